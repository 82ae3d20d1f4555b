//! Random histories against the simplest model of a log: a list of batches.

use super::*;
use crate::log::producer_state::ProducerStates;
use crate::record::control::{end_txn_marker, mirror_pid_reset};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Produce { producer: i64, records: i32, transactional: bool },
    Marker { producer: i64, commit: bool },
    PidReset,
    Replicate { gap: i64, records: i32 },
    NewEpoch,
    Cut { back: i64 },
    Wipe { at: i64 },
    HighWatermark { back: i64 },
    RaiseStart { by: i64 },
    Retain,
    Flush { rolled: bool },
    Kill,
    PowerLoss { seed: u64 },
    CleanStop,
    Read { from: i64, max: u32 },
}

fn ops(start_moves: bool) -> impl Strategy<Value = Vec<Op>> {
    let legal = move |op: &Op| start_moves || !matches!(op, Op::Wipe { .. } | Op::RaiseStart { .. } | Op::Retain);
    let op = prop_oneof![
        8 => (0..4i64, 1..4i32, any::<bool>())
            .prop_map(|(producer, records, transactional)| Op::Produce { producer, records, transactional }),
        2 => (0..4i64, any::<bool>()).prop_map(|(producer, commit)| Op::Marker { producer, commit }),
        1 => Just(Op::PidReset),
        4 => (0..3i64, 1..5i32).prop_map(|(gap, records)| Op::Replicate { gap: (gap - 1).max(0), records }),
        2 => Just(Op::NewEpoch),
        2 => (0..12i64).prop_map(|back| Op::Cut { back }),
        3 => (0..6i64).prop_map(|back| Op::HighWatermark { back }),
        1 => (0..60i64).prop_map(|at| Op::Wipe { at }),
        2 => (0..6i64).prop_map(|by| Op::RaiseStart { by }),
        2 => Just(Op::Retain),
        2 => any::<bool>().prop_map(|rolled| Op::Flush { rolled }),
        1 => Just(Op::Kill),
        2 => any::<u64>().prop_map(|seed| Op::PowerLoss { seed }),
        1 => Just(Op::CleanStop),
        3 => (0..60i64, 0..500u32).prop_map(|(from, max)| Op::Read { from, max }),
    ];
    prop::collection::vec(op, 1..80).prop_map(move |ops| ops.into_iter().filter(legal).collect())
}

struct Pair {
    rig: Rig,
    model: Vec<Bytes>,
    epoch: i32,
    hint: ReadHint,
    fold_producers: bool,
}

fn ends(batch: &Bytes) -> (i64, i64) {
    let view = BatchView::parse(batch).unwrap();
    (view.base_offset().0, view.last_offset().0)
}

impl Pair {
    fn new(fold_producers: bool) -> Self {
        let policy = LogPolicy { retention_bytes: 600, retention_ms: -1, ..tiny() };
        let rig = Rig::with(policy);
        Self { rig, model: Vec::new(), epoch: 0, hint: ReadHint::NONE, fold_producers }
    }

    fn append(&mut self, batch: &Bytes, origin: Origin) {
        let Ok(info) = self.rig.lead_as(batch, self.epoch, origin) else { return };
        if !info.duplicate {
            let mut bytes = batch.to_vec();
            crate::record::stamp(&mut bytes, info.base, LeaderEpoch(self.epoch));
            self.model.push(bytes.into());
        }
    }

    fn step(&mut self, op: &Op) {
        let end = self.rig.log.end().0;
        match *op {
            Op::Produce { producer, records, transactional } => {
                let sequence = self.rig.last_sequence(producer).map_or(0, |last| last + 1);
                self.append(
                    &Make { producer, sequence, records, transactional, ..Make::default() }.build(),
                    Origin::Client,
                );
            }
            Op::Marker { producer, commit } => {
                let marker = end_txn_marker(commit, ProducerId(producer), ProducerEpoch(0), 0, 0);
                self.append(&marker, Origin::Coordinator);
            }
            Op::PidReset => self.append(&mirror_pid_reset(None, 0), Origin::Coordinator),
            Op::Replicate { gap, records } => {
                let batch = at(end + gap, self.epoch, records);
                self.rig.follow(std::slice::from_ref(&batch), self.epoch).unwrap();
                self.model.push(batch);
            }
            Op::NewEpoch => self.epoch += 1,
            Op::Cut { back } => self.cut(end - back),
            Op::Wipe { at } => {
                self.rig.wipe(at);
                self.settle_names();
                self.model.clear();
                self.epoch += 1;
            }
            Op::HighWatermark { back } => {
                // It rises only, as a leader's does: what settled once stays settled.
                self.rig.hw((end - back).max(self.rig.log.high_watermark().0));
            }
            Op::RaiseStart { by } => {
                let to = self.rig.log.start().plus(by);
                self.rig.log.maybe_raise_log_start(&mut self.rig.guards, to);
            }
            Op::Retain => {
                self.rig.retain(1000);
            }
            Op::Flush { rolled } => self.rig.flush(if rolled { FlushUpto::Rolled } else { FlushUpto::End }),
            Op::Kill => self.restart(false),
            Op::PowerLoss { seed } => {
                self.rig.disk.crash(seed);
                self.restart(false);
            }
            Op::CleanStop => {
                self.rig.stop_clean();
                self.restart(true);
            }
            Op::Read { from, max } => self.read(from, max),
        }
        self.compare();
    }

    fn cut(&mut self, to: i64) {
        let start = self.rig.log.start().0;
        let cut = self.rig.cut(to);
        self.model.retain(|batch| ends(batch).1 < to);
        if cut {
            // As in life: what replaces a cut tail is of a newer leader.
            self.epoch += 1;
        }
        if to < start || self.rig.log.is_empty() {
            self.settle_names();
        }
    }

    /// A reset that a crash undoes gives back the log from before it; the model does not follow that far.
    fn settle_names(&mut self) {
        self.rig.disk.flush_dir(self.rig.dir);
    }

    fn restart(&mut self, clean: bool) {
        let from = self.rig.checkpointed(clean);
        let (hw, end) = (self.rig.log.high_watermark(), self.rig.log.end());
        self.rig.load(from);
        let log = &self.rig.log;
        assert!(log.end() >= from.recovery_point, "durable data is gone: {} < {}", log.end(), from.recovery_point);
        assert!(log.end() <= end, "something was invented");
        if clean {
            assert_eq!((log.end(), log.high_watermark()), (end, hw));
        }
        let end = log.end().0;
        self.model.retain(|batch| ends(batch).1 < end);
        self.epoch += 1;
    }

    fn read(&mut self, from: i64, max: u32) {
        let log = &self.rig.log;
        let (from, upto) = (Offset(from).clamp(log.start(), log.end()), log.end());
        for _ in 0..3 {
            let mut out = Vec::new();
            log.read(&self.rig.disk, from, upto, max, true, &mut self.hint, &mut out).unwrap();
            let first = self.model.iter().position(|batch| ends(batch).1 >= from.0).unwrap_or(self.model.len());
            let expected = &self.model[first..];
            assert_eq!(out, expected[..out.len()], "read at {from}");
            assert_eq!(out.is_empty(), expected.is_empty());
        }
    }

    fn compare(&self) {
        let (rig, log) = (&self.rig, &self.rig.log);
        let kept: Vec<_> = self.model.iter().filter(|batch| ends(batch).1 >= log.start().0).cloned().collect();
        assert_eq!(rig.batches(), kept);
        assert!(log.start() <= log.high_watermark() && log.high_watermark() <= log.end());
        assert!(log.recovery_point() <= log.end());
        assert!(kept.last().is_none_or(|last| ends(last).1 + 1 == log.end().0));
        let (mut epochs, mut producers) = (EpochCache::default(), ProducerStates::default());
        for batch in &kept {
            let view = BatchView::parse(batch).unwrap();
            epochs.assign(view.leader_epoch(), view.base_offset().max(log.start()));
            producers.apply(&view, || true);
        }
        // Retention moves the first entry up to the log start, which a gap may separate from the first batch.
        epochs.truncate_from_start(log.start());
        // The first entry may be of an epoch whose last records lie just below the log start, as in Kafka.
        let real = log.epochs().entries();
        let extra = real.first().is_some_and(|first| {
            first.start == log.start() && epochs.entries().first().is_none_or(|fold| fold.epoch != first.epoch)
        });
        let real = &real[usize::from(extra)..];
        let same = real.iter().map(|e| e.epoch).eq(epochs.entries().iter().map(|e| e.epoch));
        assert!(same, "{:?} is not the fold {:?}", log.epochs(), epochs);
        assert!(real.iter().zip(epochs.entries()).all(|(real, fold)| real.start <= fold.start));
        if self.fold_producers {
            assert_eq!(log.epochs(), &epochs);
            producers.on_high_watermark(log.high_watermark());
            assert_eq!(log.producers(), &producers);
        }
    }
}

fn run(ops: &[Op], fold_producers: bool) {
    let mut pair = Pair::new(fold_producers);
    for op in ops {
        pair.step(op);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_that_keeps_its_start_is_its_model_and_its_tables_are_the_fold(ops in ops(false)) {
        run(&ops, true);
    }

    #[test]
    fn a_log_whose_start_moves_is_its_model(ops in ops(true)) {
        run(&ops, false);
    }
}
