//! Points of perturbation, as FoundationDB's: places where the code may do another legal thing, and rarely does.
//!
//! A point changes timing, sizes or order, never what the protocol promises: a fetch is answered with one batch, a log rolls
//! early, a queue waits longer. A run arms some of them, by name or by its seed; an armed point fires with a small chance each time it
//! is passed, or each time if a run says so. Whether it fires is a hash of the node's key, the point and how often it was asked here:
//! no draw depends on another. Unarmed, a point costs one test of a bit.

macro_rules! points {
    ($( $name:ident $one_in:literal $says:literal; )*) => {
        /// A point, by its place in [`Point::ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Point { $( #[doc = $says] $name ),* }
        impl Point {
            /// All, with their names, of how many chances one fires, and what happens then.
            pub const ALL: &'static [(Self, &'static str, u64, &'static str)] =
                &[ $( (Self::$name, stringify!($name), $one_in, $says) ),* ];
        }
    };
}

points! {
    FetchCutShort 8 "a fetch is answered with one batch";
    FetchAnswersAtOnce 8 "a fetch is answered with whatever there is, however little was asked to be waited for";
    FetchWaitsInVain 32 "a fetch waits until its time is over, whatever comes";
    FetchSessionEvicted 64 "a fetch finds that its session gave way to others";
    ReplicaFetchSmall 8 "a follower asks for one byte: one batch";
    ReplicaFetchAtOnce 16 "a follower asks not to wait";
    ReplicaBackoffShort 2 "a follower sets a partition aside for a sixteenth of the backoff";
    MirrorFetchSmall 8 "a mirror fetcher asks for one byte: one batch";
    MirrorFetchAtOnce 16 "a mirror fetcher asks not to wait";
    MirrorBackoffShort 2 "a mirror fetcher sets a partition aside for a sixteenth of the backoff";
    MirrorRetrySoon 2 "a failed mirror partition is retried after a tenth of its wait";
    SyncSoon 4 "the next look at a source comes after an eighth of the interval";
    SyncLate 4 "the next look at a source comes after twice the interval";
    StateWriteLingers 4 "writes of mirror states are queued for 50 ms more";
    ShardLoadWaits 2 "a coordinator shard is read after everything else that the lane has to do";
    ChoreSoon 4 "a chore (ISR check, checkpoint, retention, cleaning) comes after an eighth of its interval";
    ChoreLate 8 "a chore comes after one and a half of its interval";
    RollEarly 64 "a log rolls before it appends";
    CleanAll 2 "a log is compacted, however little of it is dirty";
    FlushAtOnce 32 "an append is followed by a flush";
    CheckpointAtOnce 64 "high watermarks are checkpointed after an append";
    HeartbeatSoon 4 "a broker's next heartbeat comes after a quarter of the interval";
    ExtraWake 64 "a lane is woken for nothing";
    MetadataShort 8 "a fetch of the metadata log is answered with one batch";
    SnapshotAtOnce 16 "a controller writes a snapshot, however little came since the last";
    ConsumerFetchSmall 8 "a consumer asks for one byte: one batch";
    ClientRefreshes 256 "a client asks for metadata again";
}

const COUNT: usize = Point::ALL.len();
const _: () = assert!(COUNT <= 64, "points are bits of one word");

impl Point {
    /// The point of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text, ..)| *text == name).map(|(point, ..)| *point)
    }
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Which points are armed at one node, and what became of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    armed: u64,
    /// Those that fire each time.
    always: u64,
    key: u64,
    asked: [u32; COUNT],
    fired: [u32; COUNT],
}

impl Default for Points {
    fn default() -> Self {
        Self { armed: 0, always: 0, key: 0, asked: [0; COUNT], fired: [0; COUNT] }
    }
}

impl Points {
    /// Arms a point.
    pub fn arm(&mut self, point: Point) {
        self.armed |= 1 << point as u8;
    }
    /// Arms a point that fires each time it is passed.
    pub fn arm_always(&mut self, point: Point) {
        self.arm(point);
        self.always |= 1 << point as u8;
    }
    /// Disarms all: nothing fires any more.
    pub fn disarm(&mut self) {
        (self.armed, self.always) = (0, 0);
    }
    /// Whether any point is armed.
    #[must_use]
    pub const fn is_armed(&self) -> bool {
        self.armed != 0
    }
    /// The key of all draws at this node.
    pub fn set_key(&mut self, key: u64) {
        self.key = key;
    }
    /// Whether the other legal thing is to happen here, now.
    #[must_use]
    #[inline]
    pub fn fires(&mut self, point: Point) -> bool {
        self.armed & (1 << point as u8) != 0 && self.draw(point)
    }
    #[cold]
    fn draw(&mut self, point: Point) -> bool {
        let at = point as usize;
        self.asked[at] = self.asked[at].wrapping_add(1);
        let entropy = crate::entropy::Entropy(self.key);
        let always = self.always & (1 << at) != 0;
        let fires = always || entropy.below(at as u64, u64::from(self.asked[at]), Point::ALL[at].2) == 0;
        self.fired[at] += u32::from(fires);
        fires
    }
    /// How often each armed point was passed and fired.
    pub fn counts(&self) -> impl Iterator<Item = (Point, u32, u32)> + '_ {
        Point::ALL.iter().map(|(point, ..)| (*point, self.asked[*point as usize], self.fired[*point as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unarmed_point_never_fires_and_an_armed_one_about_as_often_as_it_says() {
        let mut points = Points::default();
        points.set_key(7);
        assert!((0..1_000).all(|_| !points.fires(Point::RollEarly)));
        assert_eq!(
            points,
            {
                let mut same = Points::default();
                same.set_key(7);
                same
            },
            "nothing was counted"
        );
        points.arm(Point::FetchCutShort);
        let fired = (0..8_000).filter(|_| points.fires(Point::FetchCutShort)).count();
        assert!((800..1_200).contains(&fired), "{fired} of 8,000");
        let told: Vec<_> = points.counts().filter(|(_, asked, _)| *asked > 0).collect();
        assert_eq!(told, [(Point::FetchCutShort, 8_000, fired as u32)]);
        points.arm_always(Point::MetadataShort);
        assert!((0..100).all(|_| points.fires(Point::MetadataShort)));
        points.disarm();
        assert!(!points.fires(Point::MetadataShort));
        assert!(!points.is_armed() && (0..1_000).all(|_| !points.fires(Point::FetchCutShort)));
    }

    #[test]
    fn draws_differ_by_node_and_by_point_and_by_nothing_else() {
        let pattern = |key: u64, point: Point, beside: Option<Point>| {
            let mut points = Points::default();
            points.set_key(key);
            points.arm(point);
            beside.into_iter().for_each(|other| points.arm(other));
            let draw = |_| {
                let _ = beside.is_some_and(|other| points.fires(other));
                points.fires(point)
            };
            (0..64).map(draw).collect::<Vec<_>>()
        };
        let one = pattern(1, Point::CleanAll, None);
        assert_eq!(one, pattern(1, Point::CleanAll, Some(Point::ShardLoadWaits)));
        assert_ne!(one, pattern(2, Point::CleanAll, None));
        assert_ne!(one, pattern(1, Point::ShardLoadWaits, None));
    }

    #[test]
    fn every_point_is_found_by_its_name() {
        for (point, name, one_in, _) in Point::ALL {
            assert_eq!((Point::named(name), point.name()), (Some(*point), *name));
            assert!(*one_in > 1, "{name} is the exception, not the rule");
        }
    }
}
