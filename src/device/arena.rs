//! Device memory: arenas, and spans of them.

use super::status::check;
use super::{Card, DeviceError, Status, sys};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// On the card; the host has no access.
    Device,
    /// Pinned host memory that the card reads and writes.
    Host,
}

#[derive(Debug)]
struct ArenaInner {
    raw: NonNull<sys::xk_arena>,
    base: NonNull<u8>,
    bytes: u64,
    kind: MemoryKind,
    card: Card,
}

// SAFETY: after creation the handle is used for one thing, its destruction, which any thread may do; the base address
// is only handed on.
unsafe impl Send for ArenaInner {}
// SAFETY: as above.
unsafe impl Sync for ArenaInner {}

impl Drop for ArenaInner {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and is used no more; the call waits for the kernels that may use the memory.
        unsafe { sys::xk_arena_destroy(self.raw.as_ptr()) };
    }
}

/// One allocation. Clones are the same memory, which is freed with the last of them and of its spans.
#[derive(Debug, Clone)]
pub struct Arena(Arc<ArenaInner>);

impl Arena {
    pub fn new(card: &Card, bytes: u64, kind: MemoryKind) -> Result<Self, DeviceError> {
        let code = match kind {
            MemoryKind::Device => sys::XK_MEMORY_DEVICE,
            MemoryKind::Host => sys::XK_MEMORY_HOST,
        };
        let mut raw = null_mut();
        // SAFETY: the card is live and the out-pointer is to a live pointer.
        check(unsafe { sys::xk_arena_create(card.raw(), bytes, code, &mut raw) })?;
        let raw = NonNull::new(raw).expect("xk_arena_create gives an arena with XK_OK");
        let mut base = null_mut();
        // SAFETY: the arena is live and the out-pointer is to a live pointer; with both, the call cannot fail.
        check(unsafe { sys::xk_arena_base(raw.as_ptr(), &mut base) })?;
        let base = NonNull::new(base.cast()).expect("an arena has an address");
        Ok(Self(Arc::new(ArenaInner { raw, base, bytes, kind, card: card.clone() })))
    }

    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    pub fn kind(&self) -> MemoryKind {
        self.0.kind
    }

    pub fn card(&self) -> &Card {
        &self.0.card
    }

    /// `bytes` bytes from `offset` on.
    pub fn span(&self, offset: u64, bytes: u64) -> Result<Span, DeviceError> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.0.bytes) {
            let text = format!(
                "Arena::span: expected a range within {} bytes, got {bytes} bytes from {offset} on",
                self.0.bytes
            );
            return Err(DeviceError { status: Status::VALUE, text });
        }
        Ok(Span { arena: self.clone(), offset, bytes })
    }

    /// The whole arena.
    pub fn whole(&self) -> Span {
        Span { arena: self.clone(), offset: 0, bytes: self.0.bytes }
    }

    pub(super) fn is(&self, other: &Arena) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A range of an arena, which it keeps alive.
#[derive(Debug, Clone)]
pub struct Span {
    arena: Arena,
    offset: u64,
    bytes: u64,
}

impl Span {
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A range within this one.
    pub fn span(&self, offset: u64, bytes: u64) -> Result<Span, DeviceError> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let text =
                format!("Span::span: expected a range within {} bytes, got {bytes} bytes from {offset} on", self.bytes);
            return Err(DeviceError { status: Status::VALUE, text });
        }
        Ok(Span { arena: self.arena.clone(), offset: self.offset + offset, bytes })
    }

    /// The device's address of the first byte, for kernel arguments.
    pub fn ptr(&self) -> *mut c_void {
        // The offset is within the arena, see `Arena::span`.
        self.arena.0.base.as_ptr().wrapping_add(self.offset as usize).cast()
    }

    /// The host's address of the first byte, if the host has one. What the card does with the memory at the same time
    /// is the caller's concern.
    pub fn host_ptr(&self) -> Option<*mut u8> {
        (self.arena.0.kind == MemoryKind::Host).then(|| self.ptr().cast())
    }
}
