//! Placeholder: see its owner's branch.
