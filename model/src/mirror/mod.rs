//! Cluster mirroring (KIP-1279).
