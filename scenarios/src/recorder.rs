//! `trace.ndjson`: every trace event of a run, one JSON object a line, with simulated time and event number only.

use mirrorlab_model::ids::Nanos;
use mirrorlab_model::trace::TraceEvent;
use mirrorlab_sim::world::World;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes trace events to a file. After an error it writes nothing more, and says so at the end.
#[derive(Debug)]
pub struct Recorder {
    out: BufWriter<File>,
    error: Option<std::io::Error>,
}

impl Recorder {
    /// A recorder over a new file.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(Self { out: BufWriter::new(File::create(path)?), error: None })
    }

    /// Writes what the world's last step traced.
    pub fn record(&mut self, world: &World) {
        for event in world.trace() {
            if self.error.is_none() {
                self.error = write_line(&mut self.out, world, world.now(), event).err();
            }
        }
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first error of any line.
    pub fn finish(mut self) -> std::io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

fn write_line(out: &mut impl Write, world: &World, now: Nanos, event: &TraceEvent) -> std::io::Result<()> {
    let text = format!("{:?}", event.trace);
    let kind = text.split([' ', '{']).next().unwrap_or_default();
    let line = serde_json::json!({
        "t_ns": now.0,
        "step": world.counts().events,
        "node": &*world.node(event.node).name,
        "event": kind,
        "fields": text[kind.len()..].trim(),
    });
    writeln!(out, "{line}")
}
