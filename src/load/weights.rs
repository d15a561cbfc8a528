//! Weights: from the mapped file, repacked on the host, to the device.

use super::pack::{codebook, pack_matrix};
use super::{Model, Progress};
use crate::device::{Arena, DeviceError, Queue};
use crate::plan::{ArenaKind, Plan, Region, Weight};

/// Copies everything that the plan places on the device: matrices in their packed layout, vectors, codebooks.
///
/// # Errors
/// When the device fails.
pub fn upload(
    model: &Model,
    plan: &Plan,
    arenas: &[Arena],
    queue: &Queue,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), DeviceError> {
    let file = model.file();
    let total = plan.ledger.bytes(ArenaKind::Weights);
    let mut done = 0;
    let mut sent = |region: Region, bytes: &[u8]| -> Result<(), DeviceError> {
        queue.upload(&arenas[region.arena].span(region.offset, bytes.len() as u64)?, bytes)?;
        done += bytes.len() as u64;
        progress(Progress::Weights { done, total });
        Ok(())
    };
    for codebook_plan in &plan.codebooks {
        let table = codebook(codebook_plan.format).unwrap_or_default();
        let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_le_bytes()).collect();
        sent(codebook_plan.region, &bytes)?;
    }
    for vector in &plan.vectors {
        let bytes: Vec<u8> = vector.values.load(file).iter().flat_map(|value| value.to_le_bytes()).collect();
        sent(vector.region, &bytes)?;
    }
    for weight in &plan.weights {
        let Weight { tensor, region, expert_bytes } = weight;
        // One matrix at a time: a tensor of all experts would need a second copy of itself.
        let mut packed = vec![0; *expert_bytes as usize];
        for expert in 0..tensor.experts.unwrap_or(1) {
            pack_matrix(tensor.format, tensor.rows, tensor.cols, &tensor.matrix(file, expert), &mut packed);
            let offset = region.offset + expert as u64 * expert_bytes;
            sent(Region { offset, bytes: *expert_bytes, ..*region }, &packed)?;
        }
    }
    Ok(())
}
