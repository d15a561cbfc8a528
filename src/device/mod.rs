//! Safe owners over the kernels' C ABI (`include/xk.h`).
//!
//! Every `unsafe` block makes one call; what the call needs is guaranteed by the owner that makes it. Destroying
//! memory, modules and graphs waits for the card's queues, so that dropping an owner cannot pull memory from under a
//! running kernel; recorded graphs keep the arenas and modules that they use.

mod arena;
pub mod cache;
mod card;
pub mod choose;
#[doc(hidden)]
pub mod fault;
mod graph;
pub mod kernels;
mod memory;
mod module;
mod peer;
mod queue;
mod selftest;
mod signals;
mod status;
#[allow(dead_code, non_camel_case_types, unreachable_pub)]
pub mod sys;

pub use arena::{Arena, MemoryKind, Span};
pub(crate) use card::text;
pub use card::{Card, DeviceInfo, Part, devices};
pub use choose::CardsError;
pub use graph::Graph;
pub use memory::host_free_bytes;
pub use module::{Kernel, Module};
pub use peer::{PeerError, peer_works};
pub use queue::{Event, Queue};
pub use selftest::canary;
pub use signals::KeptHandlers;
pub use status::{DeviceError, Status, check};
