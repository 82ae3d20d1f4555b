//! What a broker, a controller, a client and a mirror *are*: the protocol as plain state machines.
//!
//! Nothing here waits, draws, sleeps, opens a file or a socket, or reads a clock: time is an argument, the disk is a
//! [`ports::Disk`], everything else is a value in or out ([`ports::Input`], [`ports::Effect`]). So a test is: state, input,
//! expected effects; and the same code can run in a simulation or on a real host.
//!
//! Read in this order (a room uses only rooms above it in this list):
//! 1. [`ids`], [`entropy`], [`states`], [`guards`]: names and quantities, draws, states of a mirror, load-bearing conditions
//! 2. [`record`]: batches; [`wire`]: messages; [`trace`]: what happened; [`ports`]: the door
//! 3. [`metadata`]: records and image of the metadata log
//! 4. [`log`]: one replica's log on disk
//! 5. [`replica`]: leader and follower of a partition
//! 6. [`controller`]: one engine that plans and replays
//! 7. [`client`]: producer, consumer, admin
//! 8. [`mirror`]: fetcher, epochs, states
//! 9. [`broker`]: one process of all that
//! 10. [`admin`]: the operators' tool for mirrors, as pure functions

pub mod admin;
pub mod broker;
pub mod client;
pub mod controller;
pub mod coordinator;
pub mod entropy;
pub mod guards;
pub mod ids;
pub mod log;
pub mod metadata;
pub mod mirror;
pub mod ports;
pub mod record;
pub mod replica;
pub mod states;
pub mod testing;
pub mod trace;
pub mod wire;
