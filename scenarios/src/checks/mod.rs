//! What must hold: one property per file, named by its id in the catalogue of invariants, its statement in the file's head.
//!
//! Read in this order: [`table`] (all of them), [`sight`] (what a check may see), [`logs`] (how logs compare), [`ghost`] (what
//! all checks share), [`lives`] (what is committed of mirrored partitions), [`transactions`] (what those of transactions share),
//! `core` (which event goes to which check), then the properties; [`excuses`] is the closed
//! list of what explains a loss or a delay.

pub mod compaction;
pub mod core;
pub mod cx;
mod damage;
pub mod excuses;
pub mod ghost;
mod l01_decided;
mod l02_everywhere;
mod l03_registered;
mod l04_leaders;
mod l05_in_sync;
mod l06_watermark;
mod l07_stable;
mod l08_mirrored;
mod l09_no_transient_state;
mod l10_desired;
mod l11_retried;
mod l13_consumers;
mod l14_metadata;
mod l16_bad_neighbours;
mod l17_quorum;
mod l19_time;
pub mod liveness;
pub mod lives;
pub mod logs;
pub mod member;
mod mirror_events;
pub mod ranges;
pub mod report;
pub mod roster;
mod s01_valid_log;
mod s02_log_matching;
mod s03_leader_completeness;
mod s04_candidate_completeness;
mod s05_quorum_superset;
mod s06_no_global_loss;
mod s07_watermarks;
mod s08_repeatable_read;
mod s09_epochs;
mod s10_one_writer;
mod s11_no_zombie_ack;
mod s12_membership;
mod s13_metadata;
mod s14_unclean_exclusion;
mod s15_recovery;
mod s16_idempotence;
mod s17_producer_table;
mod s18_atomicity;
mod s19_stable;
mod s20_markers;
mod s21_log_start;
mod s22_visible_ends;
mod s30_mirror_equality;
mod s31_origin;
mod s32_read_only;
mod s33_fence_at_stop;
mod s34_epoch_floor;
mod s35_exact_cut;
mod s36_barrier;
mod s37_state_machine;
mod s38_durable_states;
mod s39_position;
mod s40_producer_reset;
mod s41_no_open_transaction;
mod s42_isolation;
mod s46_topics;
mod s47_no_loop;
mod s48_source_identity;
mod s49_desired_rules;
mod s50_honest_lag;
mod s51_legal_compaction;
mod s52_undisturbed_quorum;
pub mod sight;
pub mod suite;
pub mod table;
pub mod transactions;
mod walk;
pub mod world_sight;

pub use self::core::{Core, Liveness, Options};
pub use suite::Suite;
pub use table::{explain, CheckInfo, CHECKS};

#[cfg(test)]
mod tests;
