//! Matrices, read from a model's files in large blocks and packed by several threads.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, mpsc};

use super::gather::gather;
use super::pack::{Layout, TILE_ROWS, pack_matrix};
use super::{LoadError, Sources};
use crate::model::TensorRef;

/// A matrix to be loaded.
#[derive(Debug)]
pub struct Job<'a> {
    pub tensor: &'a TensorRef,
    /// Which of the tensor's matrices; 0 without experts.
    pub expert: usize,
    /// Where the packed matrix goes, as many bytes as [`Layout::matrix_bytes`] says. `None`: into a buffer that is used
    /// again after the call that gets it.
    pub target: Option<&'a mut [u8]>,
}

/// Whole tiles of a packed matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    /// Index of the job.
    pub job: usize,
    /// Where `bytes` lie in the packed matrix.
    pub offset: usize,
    pub bytes: &'a [u8],
}

/// How much is loaded side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Threads that read and pack; with 0 the calling one does.
    pub threads: usize,
    /// About the most bytes that are read, or packed, at once; at least a tile.
    pub block_bytes: usize,
    /// The most bytes of all blocks and buffers; at least what one thread needs.
    pub in_flight_bytes: usize,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        StreamOptions { threads, block_bytes: 2 << 20, in_flight_bytes: 256 << 20 }
    }
}

/// Reads and packs matrices. `each` gets them in pieces, on the calling thread, in no order; each piece of a job once.
///
/// # Errors
/// When bytes cannot be read, or `each` gives an error. Either ends the loading; targets are then not defined.
///
/// # Panics
/// If a tensor has no such expert or `sources` no such part, or a target is not as long as the packed matrix.
pub fn stream<'a, E: From<LoadError>>(
    sources: &Sources,
    jobs: Vec<Job<'a>>,
    options: StreamOptions,
    mut each: impl FnMut(Packed<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let StreamOptions { threads, block_bytes, in_flight_bytes } = options;
    let blocks = blocks(jobs, block_bytes);
    let block_bytes = blocks.iter().map(|block| block.bytes).max().unwrap_or(0);
    let pieces = blocks.iter().flat_map(|block| &block.pieces);
    let (piece_count, buffer_bytes) = (pieces.clone().count(), pieces.map(Piece::buffer_bytes).max().unwrap_or(0));
    // Each thread has a block; what is left is for buffers, at least one for each thread.
    let threads = threads.min(blocks.len()).min((in_flight_bytes / (block_bytes + buffer_bytes).max(1)).max(1));
    let left_bytes = in_flight_bytes.saturating_sub(threads.max(1) * block_bytes);
    let buffers = (left_bytes / buffer_bytes.max(1)).clamp(1, piece_count.max(1));

    let (give_back, free) = mpsc::channel();
    for _ in 0..buffers {
        give_back.send(Vec::new()).expect("the receiver is there");
    }
    let (blocks, free) = (Mutex::new(blocks.into_iter()), Mutex::new(free));
    let next_block = || blocks.lock().expect("no thread panics").next();
    let free_buffer = || free.lock().expect("no thread panics").recv().ok();
    let work = |emit: &mut dyn FnMut(Result<(Piece<'a>, Buffer<'a>), LoadError>) -> bool| {
        let mut stored = Vec::new();
        while let Some(block) = next_block() {
            if let Err(error) = block.read(sources, &mut stored) {
                // No other thread begins a block for nothing.
                *blocks.lock().expect("no thread panics") = Vec::new().into_iter();
                emit(Err(error));
                return;
            }
            let mut rest = &stored[..];
            for mut piece in block.pieces {
                let rows = rest.split_off(..piece.stored_bytes()).expect("a block has the bytes of its pieces");
                let mut buffer = match piece.target.take() {
                    Some(target) => Buffer::Target(target),
                    None => {
                        // There is none any more when the calling thread has stopped.
                        let Some(mut bytes) = free_buffer() else { return };
                        bytes.resize(piece.packed_bytes, 0);
                        Buffer::Own(bytes)
                    }
                };
                let TensorRef { format, cols, .. } = *piece.tensor;
                pack_matrix(format, piece.rows, cols, &piece.tensor.narrow(Cow::Borrowed(rows)), buffer.bytes());
                if !emit(Ok((piece, buffer))) {
                    return;
                }
            }
        }
    };
    gather(threads, &work, move |packed| {
        let (piece, mut buffer) = packed?;
        each(Packed { job: piece.job, offset: piece.offset, bytes: buffer.bytes() })?;
        if let Buffer::Own(bytes) = buffer {
            // Not wanted when all threads have ended.
            let _ = give_back.send(bytes);
        }
        Ok(())
    })
}

/// Rows of a matrix that are packed together.
struct Piece<'a> {
    job: usize,
    tensor: &'a TensorRef,
    rows: usize,
    /// Where the packed bytes lie in the packed matrix.
    offset: usize,
    packed_bytes: usize,
    target: Option<&'a mut [u8]>,
}

impl Piece<'_> {
    fn stored_bytes(&self) -> usize {
        self.rows * self.tensor.stored_row_bytes()
    }

    /// Bytes of the buffer that it needs.
    fn buffer_bytes(&self) -> usize {
        if self.target.is_some() { 0 } else { self.packed_bytes }
    }
}

/// Where a piece is packed.
enum Buffer<'a> {
    Own(Vec<u8>),
    Target(&'a mut [u8]),
}

impl Buffer<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Buffer::Own(bytes) => bytes,
            Buffer::Target(bytes) => bytes,
        }
    }
}

/// Pieces that are read together.
struct Block<'a> {
    part: usize,
    /// Where the rows of the pieces lie, one after another, and of which tensor they are.
    ranges: Vec<(&'a str, Range<u64>)>,
    pieces: Vec<Piece<'a>>,
    /// Bytes of all ranges.
    bytes: usize,
}

impl<'a> Block<'a> {
    fn push(&mut self, piece: Piece<'a>, ranges: Vec<Range<u64>>) {
        let name = piece.tensor.name();
        for range in ranges {
            match self.ranges.last_mut() {
                Some((last, known)) if *last == name && known.end == range.start => known.end = range.end,
                _ => self.ranges.push((name, range)),
            }
        }
        self.bytes += piece.stored_bytes();
        self.pieces.push(piece);
    }

    fn read(&self, sources: &Sources, stored: &mut Vec<u8>) -> Result<(), LoadError> {
        stored.resize(self.bytes, 0);
        let mut rest = &mut stored[..];
        for (tensor, range) in &self.ranges {
            let bytes = (range.end - range.start) as usize;
            let to = rest.split_off_mut(..bytes).expect("a block has the bytes of its ranges");
            sources.read(self.part, range.start, to, &format!("tensor {tensor}"))?;
        }
        Ok(())
    }
}

/// Cuts matrices into pieces, and puts those that lie one behind the other in the file together.
fn blocks(jobs: Vec<Job<'_>>, block_bytes: usize) -> Vec<Block<'_>> {
    let mut pieces: Vec<(Piece<'_>, Vec<Range<u64>>)> = Vec::new();
    for (index, job) in jobs.into_iter().enumerate() {
        let Job { tensor, expert, mut target } = job;
        let layout = Layout::of(tensor.format);
        assert!(expert < tensor.experts.unwrap_or(1), "expert {expert} of tensor {}", tensor.name());
        if let Some(target) = &target {
            let expected = layout.matrix_bytes(tensor.rows, tensor.cols);
            assert_eq!(target.len(), expected, "bytes of the target of tensor {}", tensor.name());
        }
        let tile_bytes = layout.matrix_bytes(TILE_ROWS, tensor.cols).max(TILE_ROWS * tensor.stored_row_bytes());
        let step = (block_bytes / tile_bytes).max(1) * TILE_ROWS;
        let mut offset = 0;
        for first in (0..tensor.rows).step_by(step) {
            let rows = first..tensor.rows.min(first + step);
            let packed_bytes = layout.matrix_bytes(rows.len(), tensor.cols);
            let ranges = tensor.file_ranges(expert, rows.clone());
            let target = target.as_mut().and_then(|rest| rest.split_off_mut(..packed_bytes));
            pieces.push((Piece { job: index, tensor, rows: rows.len(), offset, packed_bytes, target }, ranges));
            offset += packed_bytes;
        }
    }
    pieces.sort_by_key(|(piece, ranges)| (piece.tensor.info.part, ranges.first().map(|range| range.start)));
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (piece, ranges) in pieces {
        let part = piece.tensor.info.part;
        match blocks.last_mut() {
            Some(block) if block.part == part && block.bytes + piece.stored_bytes() <= block_bytes => {
                block.push(piece, ranges);
            }
            _ => {
                let mut block = Block { part, ranges: Vec::new(), pieces: Vec::new(), bytes: 0 };
                block.push(piece, ranges);
                blocks.push(block);
            }
        }
    }
    blocks
}
