//! Worker processes, and what happens when one dies or does not come back.
//!
//! Every worker has a thread here that speaks with it; the thread that started them listens, looks at signals, and kills
//! workers whose time is over. Whatever a worker dies of costs its seed only: it is told as a panic, or as unknown if its time
//! was over or somebody killed it, and the next task starts another worker.

use super::worker::{Answer, Task};
use crate::again;
use crate::cli::now;
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::Finished;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often signals and deadlines are looked at.
const TICK: Duration = Duration::from_millis(50);

/// The subcommand that makes a worker of this program.
pub const WORKER: &str = "worker";

/// What came of a task.
#[derive(Debug)]
pub enum Ended {
    /// It ran, or took its worker down.
    Run(Box<Finished>),
    /// The smallest plan was looked for: steps before and after, if there is one.
    Shrunk(Option<(u64, u64)>),
    /// It cannot be run: the file, or this machine.
    Refused(String),
    /// It was given up because everything was.
    Stopped,
}

impl Ended {
    /// The same, of a process that was killed from outside.
    fn killed(mut self) -> Self {
        if let Self::Run(run) = &mut self {
            run.killed = true;
        }
        self
    }
}

/// How a worker ended.
enum Gone {
    /// Somebody, or the system, ended it.
    Killed(i32),
    /// By itself.
    Ended(String),
}

impl Gone {
    fn of(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM};
            // Others, such as a bad address, are the program's own doing.
            if [SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM].contains(&signal) {
                return Self::Killed(signal);
            }
        }
        Self::Ended(status.to_string())
    }
}

/// The worker that a thread speaks with, for others to kill.
#[derive(Debug, Default)]
struct Held {
    child: Option<Child>,
    due: Option<Instant>,
    late: bool,
}

type Slot = Mutex<Held>;

/// A thread that panicked leaves data that is still whole: a number, a child.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Workers.
#[derive(Debug)]
pub struct Pool {
    program: PathBuf,
    timeout: Duration,
    slots: Vec<Slot>,
    /// Set by a signal: everything ends now.
    signalled: Arc<AtomicBool>,
    /// Nothing new is begun.
    closing: AtomicBool,
}

impl Pool {
    /// A pool of so many workers; a run that takes longer than `timeout` is given up.
    ///
    /// # Errors
    /// If this program cannot be found again, or signals cannot be caught.
    pub fn new(jobs: u32, timeout: Duration) -> std::io::Result<Self> {
        let signalled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            // The second one does not ask.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&signalled))?;
            signal_hook::flag::register(signal, Arc::clone(&signalled))?;
        }
        Ok(Self {
            program: std::env::current_exe()?,
            timeout,
            slots: (0..jobs.max(1)).map(|_| Slot::default()).collect(),
            signalled,
            closing: AtomicBool::new(false),
        })
    }

    /// Begins nothing new; what runs goes on to its end.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Lets it begin again.
    pub fn open(&self) {
        self.closing.store(false, Ordering::Relaxed);
    }

    /// Whether a signal ended it.
    #[must_use]
    pub fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }

    /// Whether anything new is begun.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closing.load(Ordering::Relaxed) || self.is_signalled()
    }

    /// Works off a queue: `work` is called for each entry in a thread that has a worker, and what it tells is heard here, one at a
    /// time. `tick` is called again and again meanwhile.
    pub fn each<T: Send, R: Send>(
        &self,
        queue: impl Iterator<Item = T> + Send,
        work: impl Fn(&mut Client<'_>, T, &dyn Fn(R)) + Sync,
        mut hear: impl FnMut(R),
        mut tick: impl FnMut(),
    ) {
        let queue = Mutex::new(queue);
        let (send, receive) = channel();
        std::thread::scope(|scope| {
            for slot in &self.slots {
                let (queue, work, send) = (&queue, &work, send.clone());
                scope.spawn(move || {
                    let mut client = Client { pool: self, slot, pipes: None };
                    while !self.is_closed() {
                        let Some(next) = lock(queue).next() else { break };
                        work(&mut client, next, &|told| {
                            let _ = send.send(told);
                        });
                    }
                });
            }
            drop(send);
            loop {
                match receive.recv_timeout(TICK) {
                    Ok(told) => hear(told),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                self.kill_what_is_over();
                tick();
            }
        });
    }

    fn kill_what_is_over(&self) {
        let (now, all) = (now(), self.is_signalled());
        for slot in &self.slots {
            let mut held = lock(slot);
            let late = held.due.is_some_and(|due| due <= now);
            held.late |= late;
            if late || all {
                if let Some(child) = &mut held.child {
                    let _ = child.kill();
                }
            }
        }
    }
}

/// A thread's end of its worker.
pub struct Client<'a> {
    pool: &'a Pool,
    slot: &'a Slot,
    pipes: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Client<'_> {
    /// Whether the thread should come to an end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    /// Runs a task in this worker, or in a new one if there is none.
    pub fn run(&mut self, task: &Task) -> Ended {
        if self.pool.is_signalled() {
            return Ended::Stopped;
        }
        if self.pipes.is_none() {
            if let Err(error) = self.start() {
                return Ended::Refused(format!("this machine: no worker can be started: {error}"));
            }
        }
        lock(self.slot).due = now().checked_add(self.pool.timeout);
        let answer = self.ask(task);
        let late = {
            let mut held = lock(self.slot);
            held.due = None;
            held.late
        };
        if late && matches!(answer, Some(Answer::Run(_) | Answer::Shrunk { .. } | Answer::Refused { .. })) {
            // It answered, and was killed at that moment: that is no fault of the next task.
            self.bury();
        }
        match answer {
            Some(Answer::Run(finished)) => Ended::Run(finished),
            Some(Answer::Shrunk { steps }) => Ended::Shrunk(steps),
            Some(Answer::Refused { text }) => Ended::Refused(text),
            Some(Answer::Panicked { text }) => {
                self.bury();
                self.died(task, Verdict::Panic, text)
            }
            None => {
                let (late, how) = self.bury();
                if self.pool.is_signalled() {
                    return Ended::Stopped;
                }
                if late {
                    let reason = format!("no end after {} s", self.pool.timeout.as_secs_f64());
                    return self.died(task, Verdict::Unknown, reason);
                }
                match how {
                    Gone::Killed(signal) => {
                        let reason =
                            format!("its process was killed from outside, by signal {signal}; was memory short?");
                        self.died(task, Verdict::Unknown, reason).killed()
                    }
                    Gone::Ended(how) => self.died(task, Verdict::Panic, format!("its process ended: {how}")),
                }
            }
        }
    }

    /// Ends this worker: the next task has a new process.
    pub fn renew(&mut self) {
        self.bury();
    }

    fn died(&self, task: &Task, verdict: Verdict, reason: String) -> Ended {
        let repro = again::run(&task.file, task.seed, &task.overrides);
        Ended::Run(Box::new(Finished::without_record(&task.file, task.seed, verdict, reason, repro)))
    }

    fn start(&mut self) -> std::io::Result<()> {
        let mut command = Command::new(&self.pool.program);
        command.arg(WORKER).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A terminal's Ctrl-C is for this process, which ends its workers itself.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        self.pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        *lock(self.slot) = Held { child: Some(child), due: None, late: false };
        Ok(())
    }

    fn ask(&mut self, task: &Task) -> Option<Answer> {
        let (to, from) = self.pipes.as_mut()?;
        let line = serde_json::to_string(task).ok()?;
        writeln!(to, "{line}").and_then(|()| to.flush()).ok()?;
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Waits for the worker's end; whether its time was over, and how it ended.
    fn bury(&mut self) -> (bool, Gone) {
        // The end of its input is the end of an idle worker.
        self.pipes = None;
        let (child, late) = {
            let mut held = lock(self.slot);
            (held.child.take(), std::mem::take(&mut held.late))
        };
        let how = child.map(|mut child| match child.wait() {
            Ok(status) => Gone::of(status),
            Err(error) => Gone::Ended(error.to_string()),
        });
        (late, how.unwrap_or_else(|| Gone::Ended("unknown".to_owned())))
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.bury();
    }
}

#[cfg(all(test, unix))]
#[path = "pool_tests.rs"]
mod tests;
