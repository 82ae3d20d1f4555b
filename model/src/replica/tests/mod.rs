//! Tests of leader and follower, by what they are about.

mod alignment;
mod fetcher;
mod isr;
mod replication;
mod roles;
mod sessions;
