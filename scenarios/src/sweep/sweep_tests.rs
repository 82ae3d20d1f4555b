//! What a sweep makes of two runs of one seed.
