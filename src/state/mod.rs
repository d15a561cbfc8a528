//! The state of a sequence as a value: what belongs to it, banks of snapshots, and files.
//!
//! Nothing here touches a device; `exec` copies between a card's memory and what this module describes.

mod bank;
mod codec;
mod disk;
mod error;
mod file;
mod format;
mod identity;
mod image;
mod index;
mod json;
mod layout;
mod marks;
mod pages;
mod prefixes;
mod store;
mod upkeep;

pub use bank::{Bank, BankCounters, BankShape, CardShape, Found, Restore, Segment, Take};
pub use codec::Encoding;
pub use disk::{Disk, Lock, ReadFile, RealDisk, WriteFile};
pub use error::SessionError;
pub use format::{
    END, END_MAGIC, FORMAT_VERSION, Field, HEADER, IDENTITY_FIELD, MAGIC, NOTES_BYTES_MAX, PREFIX, SECTION, Section,
    SectionExtent, SectionKind, SnapshotId,
};
pub use identity::{CONTRACT_VERSION, Identity, Mismatch};
pub use image::Image;
pub use index::CHAIN_MAX;
pub use layout::{Layout, Piece};
pub use marks::marks;
pub use prefixes::NodeId;
pub use store::{Extras, Info, Limits, Link, Loaded, Saved, Store};
pub use upkeep::{Entry, would_take};
