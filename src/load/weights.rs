//! Weights: from the model's files, repacked on the host, to the cards and to pinned host memory.

use super::pack::codebook;
use super::{Job, LoadError, Model, Progress, Sources, StreamOptions, stream};
use crate::device::{Arena, DeviceError, Queue, Span};
use crate::plan::{CardPlan, Place, Region, Weight};

/// A card that is to be filled.
pub struct Target<'a> {
    pub plan: &'a CardPlan,
    pub arenas: &'a [Arena],
    pub queue: &'a Queue,
    /// Slot of an expert of one of the card's expert layers, if it has one.
    pub slot: &'a dyn Fn(usize, usize) -> Option<usize>,
}

impl Target<'_> {
    fn span(&self, region: Region, bytes: usize) -> Result<Span, DeviceError> {
        self.arenas[region.arena].span(region.offset, bytes as u64)
    }

    /// Where the packed matrix of an expert goes: on the card, and in pinned host memory.
    fn places(&self, weight: &Weight, expert: usize) -> (Option<Region>, Option<Region>) {
        match weight.place {
            Place::Region(region) => (Some(region), None),
            Place::Experts { layer, matrix } => {
                let experts = &self.plan.experts[layer];
                let part = |slot: Region| Region {
                    offset: slot.offset + experts.offsets[matrix],
                    bytes: weight.matrix_bytes,
                    ..slot
                };
                let slot = (self.slot)(layer, expert).map(|slot| part(experts.slots.slot(slot)));
                (slot, experts.mirror.as_ref().map(|mirror| part(mirror.slot(expert))))
            }
        }
    }
}

/// What filling cards can fail for.
#[derive(Debug)]
pub enum UploadError {
    Load(LoadError),
    /// Of the card of this number.
    Card(usize, DeviceError),
}

impl From<LoadError> for UploadError {
    fn from(error: LoadError) -> UploadError {
        UploadError::Load(error)
    }
}

/// Bytes of what is uploaded beside matrices: codebooks and vectors.
fn other_bytes(plan: &CardPlan) -> u64 {
    let regions = plan.codebooks.iter().map(|codebook| codebook.region);
    regions.chain(plan.vectors.iter().map(|vector| vector.region)).map(|region| region.bytes).sum()
}

/// Copies everything that the plan places on cards and in host memory: matrices in their packed layout, vectors, codebooks. Nothing else may use the
/// cards meanwhile.
///
/// # Errors
/// When the files cannot be read, or a device fails.
pub fn upload(model: &Model, targets: &[Target<'_>], progress: &mut dyn FnMut(Progress)) -> Result<(), UploadError> {
    let sources = Sources::open(model.file())?;
    let mut uploads = Vec::new();
    let mut jobs = Vec::new();
    let mut matrix_bytes = 0;
    for (card, target) in targets.iter().enumerate() {
        for weight in &target.plan.weights {
            for expert in 0..weight.tensor.experts.unwrap_or(1) {
                let (on_card, on_host) = target.places(weight, expert);
                if on_card.is_none() && on_host.is_none() {
                    continue;
                }
                let mut host = None;
                if let Some(region) = on_host {
                    let span = target.span(region, region.bytes as usize);
                    let span = span.map_err(|problem| UploadError::Card(card, problem))?;
                    let address = span.host_ptr().expect("the plan books mirrors in host memory");
                    // SAFETY: the range lies in an arena that lives through the call, regions of a plan do not overlap, each is filled by one job,
                    // and the cards are at rest.
                    host = Some(unsafe { std::slice::from_raw_parts_mut(address, region.bytes as usize) });
                }
                jobs.push(Job { tensor: &weight.tensor, expert, target: host });
                uploads.push((card, on_card));
                matrix_bytes += weight.matrix_bytes;
            }
        }
    }
    // Each matrix once, also where it goes to two places.
    let total = matrix_bytes + targets.iter().map(|target| other_bytes(target.plan)).sum::<u64>();
    let mut done = 0;
    let mut sent = |card: usize, region: Option<Region>, bytes: &[u8]| -> Result<(), UploadError> {
        if let Some(region) = region {
            let span = targets[card].span(region, bytes.len());
            let uploaded = span.and_then(|span| targets[card].queue.upload(&span, bytes));
            uploaded.map_err(|problem| UploadError::Card(card, problem))?;
        }
        done += bytes.len() as u64;
        progress(Progress::Weights { done, total, read_bytes: sources.read_bytes() });
        Ok(())
    };
    for (card, target) in targets.iter().enumerate() {
        for codebook_plan in &target.plan.codebooks {
            let table = codebook(codebook_plan.format).unwrap_or_default();
            let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_le_bytes()).collect();
            sent(card, Some(codebook_plan.region), &bytes)?;
        }
        for vector in &target.plan.vectors {
            let stored = sources.tensor(&vector.values.info)?;
            let bytes: Vec<u8> = vector.values.values(&stored).iter().flat_map(|value| value.to_le_bytes()).collect();
            sent(card, Some(vector.region), &bytes)?;
        }
    }
    stream(&sources, jobs, StreamOptions::default(), |packed| {
        let (card, region) = uploads[packed.job];
        let at = |region: Region| Region { offset: region.offset + packed.offset as u64, ..region };
        sent(card, region.map(at), packed.bytes)
    })
}
