//! Stub until the checks land.
use crate::setup::Setup;
use mirrorlab_reports::record::Violation;
use mirrorlab_sim::world::World;
/// Options.
#[derive(Clone, Debug, Default)]
pub struct Options;
/// Left.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    /// V.
    pub violations: Vec<Violation>,
    /// E.
    pub excuses: Vec<String>,
}
/// Suite.
#[derive(Debug, Default)]
pub struct Suite;
impl Suite {
    /// New.
    pub fn new(_: &Setup, _: Options) -> Self {
        Self
    }
    /// Step.
    pub fn on_step(&mut self, _: &World, _: &Setup) -> &[Violation] {
        &[]
    }
    /// End.
    pub fn at_end(&mut self, _: &World, _: &Setup) -> Vec<Violation> {
        Vec::new()
    }
    /// Live.
    pub fn liveness(&mut self, _: &World, _: &Setup) -> Liveness {
        Liveness::default()
    }
}
/// Info.
pub struct CheckInfo {
    /// id
    pub id: &'static str,
    /// n
    pub name: &'static str,
    /// s
    pub statement: &'static str,
}
/// Table.
pub const CHECKS: &[CheckInfo] = &[];
