//! Weights: from the model's files, repacked on the host, to the device.

use super::pack::codebook;
use super::{Job, LoadError, Model, Progress, Sources, StreamOptions, stream};
use crate::device::{Arena, DeviceError, Queue};
use crate::plan::{ArenaKind, Plan, Region, Weight};

/// Copies everything that the plan places on the device: matrices in their packed layout, vectors, codebooks.
///
/// # Errors
/// When the files cannot be read, or the device fails.
pub fn upload<E: From<LoadError> + From<DeviceError>>(
    model: &Model,
    plan: &Plan,
    arenas: &[Arena],
    queue: &Queue,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), E> {
    let sources = Sources::open(model.file())?;
    let total = plan.ledger.bytes(ArenaKind::Weights);
    let mut done = 0;
    let mut sent = |region: Region, bytes: &[u8]| -> Result<(), DeviceError> {
        queue.upload(&arenas[region.arena].span(region.offset, bytes.len() as u64)?, bytes)?;
        done += bytes.len() as u64;
        progress(Progress::Weights { done, total, read_bytes: sources.read_bytes() });
        Ok(())
    };
    for codebook_plan in &plan.codebooks {
        let table = codebook(codebook_plan.format).unwrap_or_default();
        let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_le_bytes()).collect();
        sent(codebook_plan.region, &bytes)?;
    }
    for vector in &plan.vectors {
        let stored = sources.tensor(&vector.values.info)?;
        let bytes: Vec<u8> = vector.values.values(&stored).iter().flat_map(|value| value.to_le_bytes()).collect();
        sent(vector.region, &bytes)?;
    }
    let (mut jobs, mut regions) = (Vec::new(), Vec::new());
    for Weight { tensor, region, expert_bytes } in &plan.weights {
        for expert in 0..tensor.experts.unwrap_or(1) {
            jobs.push(Job { tensor, expert, target: None });
            let offset = region.offset + expert as u64 * expert_bytes;
            regions.push(Region { offset, bytes: *expert_bytes, ..*region });
        }
    }
    stream(&sources, jobs, StreamOptions::default(), |packed| {
        let region = regions[packed.job];
        Ok(sent(Region { offset: region.offset + packed.offset as u64, ..region }, packed.bytes)?)
    })
}
