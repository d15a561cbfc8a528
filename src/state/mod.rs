//! The state of a sequence as a value: what belongs to it, banks of snapshots, and files.
//!
//! Nothing here touches a device; `exec` copies between a card's memory and what this module describes.

mod image;
mod layout;

pub use image::Image;
pub use layout::{Layout, Piece};
