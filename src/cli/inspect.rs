//! `inspect`: what is in a file, from its header alone.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::Done;
use super::args::InspectArgs;
use super::output::Output;
use crate::gguf::GgufFile;
use crate::model::{Bound, Census, KvType, LayerKind, ModelError, advice};
use crate::plan::{ArenaKind, DEFAULT_CHUNK, Options, Plan, PlanError};

/// Tensors and bytes of one ggml type.
#[derive(Default)]
struct TypeTotal {
    tensors: usize,
    elements: u64,
    bytes: u64,
}

pub fn inspect(args: &InspectArgs, output: &mut Output) -> Result<Done> {
    let file = GgufFile::open(&args.model)?;
    let bound = Bound::new(&file);
    if args.json {
        output.json(&describe(&file, bound.as_ref(), args.tensors))?;
    } else {
        print(&file, bound.as_ref(), args.tensors, output)?;
    }
    match bound {
        Ok(_) => Ok(Done::Finished),
        Err(error) => Err(anyhow!("{}: this file does not run: {error}", args.model.display())),
    }
}

fn types(file: &GgufFile) -> BTreeMap<String, TypeTotal> {
    let mut types: BTreeMap<String, TypeTotal> = BTreeMap::new();
    for info in file.tensors() {
        let total = types.entry(info.type_name().to_string()).or_default();
        total.tensors += 1;
        total.elements += info.elements();
        total.bytes += info.bytes;
    }
    types
}

fn layer_kinds(bound: &Bound) -> (usize, usize, usize) {
    let count = |wanted: fn(&LayerKind) -> bool| bound.spec.kinds.iter().filter(|kind| wanted(kind)).count();
    (
        count(|kind| matches!(kind, LayerKind::Gdn)),
        count(|kind| matches!(kind, LayerKind::Attention { ratio } if *ratio > 0)),
        count(|kind| matches!(kind, LayerKind::Attention { ratio: 0 })),
    )
}

/// Bytes of weights on the device, which do not depend on how the model is run.
fn resident_bytes(bound: &Bound) -> Result<u64, PlanError> {
    let context = bound.spec.context_length.min(4096);
    let options = Options::new(context, DEFAULT_CHUNK.min(context), KvType::F16);
    let ledger = &Plan::new(bound, options)?.cards[0].ledger;
    Ok(ledger.bytes(ArenaKind::Weights) + ledger.bytes(ArenaKind::Experts))
}

/// Everything that looks wrong.
fn notes(file: &GgufFile, bound: &Bound) -> Vec<String> {
    let more = advice(file, bound).unwrap_or_else(|error| vec![error.to_string()]);
    bound.warnings.iter().cloned().chain(more).collect()
}

fn describe(file: &GgufFile, bound: Result<&Bound, &ModelError>, tensors: bool) -> Value {
    let keys: serde_json::Map<String, Value> =
        file.metadata().iter().map(|(key, value)| (key.to_owned(), json!(value.summary()))).collect();
    let types: serde_json::Map<String, Value> = types(file)
        .into_iter()
        .map(|(name, t)| (name, json!({ "tensors": t.tensors, "parameters": t.elements, "bytes": t.bytes })))
        .collect();
    let parts: Value = file
        .parts()
        .iter()
        .map(|part| json!({ "path": part.path().display().to_string(), "bytes": part.file_bytes() }))
        .collect();
    let mut object = json!({
        "path": file.path().display().to_string(),
        "file_bytes": file.file_bytes(),
        "parts": parts,
        "version": file.version(),
        "keys": keys,
        "types": types,
    });
    if tensors {
        let list = file.tensors().iter();
        object["tensors"] = list
            .map(|t| json!({ "name": t.name, "dims": t.dims, "type": t.type_name().to_string(), "bytes": t.bytes }))
            .collect();
    }
    match bound {
        Ok(bound) => {
            let census = Census::of(bound);
            let active: serde_json::Map<String, Value> =
                census.active_bytes.iter().map(|(part, bytes)| (part.name().to_owned(), json!(bytes))).collect();
            let (gdn, sparse, dense) = layer_kinds(bound);
            object["model"] = json!({
                "layers": { "total": bound.spec.layers, "gated_delta_net": gdn, "sparse_attention": sparse, "dense_attention": dense, "mtp_skipped": bound.spec.mtp_blocks },
                "parameters": census.parameters_total,
                "parameters_active": census.parameters_active,
                "bytes_per_token": census.active_bytes_total(),
                "bytes_per_token_by_part": active,
                "state_fixed_bytes": census.state.fixed,
                "state_bytes_per_token_f16": census.state.per_token_f16,
                "state_bytes_per_token_f32": census.state.per_token_f32,
                "ngram_table_bytes": census.ngram_table_bytes,
                "ngram_bytes_per_token": census.ngram_row_bytes,
                "embedding_bytes": bound.embed.bytes(),
                "resident_bytes": resident_bytes(bound).ok(),
                "advice": notes(file, bound),
            });
        }
        Err(error) => object["error"] = json!(error.to_string()),
    }
    object
}

fn print(file: &GgufFile, bound: Result<&Bound, &ModelError>, tensors: bool, output: &mut Output) -> Result<()> {
    output.line(format_args!(
        "file     {} ({} bytes, GGUF version {})",
        file.path().display(),
        file.file_bytes(),
        file.version()
    ))?;
    if file.parts().len() > 1 {
        for part in file.parts() {
            output.line(format_args!("  part   {} ({} bytes)", part.path().display(), part.file_bytes()))?;
        }
    }
    output.line("keys")?;
    for (key, value) in file.metadata().iter() {
        output.line(format_args!("  {key} = {}", value.summary()))?;
    }
    if tensors {
        output.line("tensors, fastest dimension first")?;
        for info in file.tensors() {
            output.line(format_args!("  {:<44} {:<8} {:?}", info.name, info.type_name(), info.dims))?;
        }
    }
    output.line("types       tensors      parameters           bytes")?;
    for (name, total) in types(file) {
        output.line(format_args!("  {name:<8} {:>8} {:>15} {:>15}", total.tensors, total.elements, total.bytes))?;
    }
    let Ok(bound) = bound else { return Ok(()) };
    let census = Census::of(bound);
    let (gdn, sparse, dense) = layer_kinds(bound);
    output.line(format_args!(
        "layers   {}: {gdn} gated delta net, {sparse} sparse attention, {dense} dense attention; {} blocks for further tokens are not used",
        bound.spec.layers, bound.spec.mtp_blocks
    ))?;
    output.line(format_args!(
        "parameters  {} in all, {} active a token",
        census.parameters_total, census.parameters_active
    ))?;
    output.line(format_args!("bytes a token  {}", census.active_bytes_total()))?;
    for (part, bytes) in &census.active_bytes {
        output.line(format_args!("  {:<18} {bytes:>14}", part.name()))?;
    }
    output.line(format_args!(
        "state a sequence  {} bytes and {} bytes a token (f16), {} (f32)",
        census.state.fixed, census.state.per_token_f16, census.state.per_token_f32
    ))?;
    match resident_bytes(bound) {
        Ok(bytes) => output.line(format_args!("on the device  {bytes} bytes of weights"))?,
        Err(error) => output.line(format_args!("on the device  no kernels for this model: {error}"))?,
    }
    output.line(format_args!("in the file  {} bytes of embedding", bound.embed.bytes()))?;
    if census.ngram_table_bytes > 0 {
        output.line(format_args!(
            "in the file  {} bytes of n-gram table, of which a token reads {}",
            census.ngram_table_bytes, census.ngram_row_bytes
        ))?;
    }
    for note in notes(file, bound) {
        output.line(format_args!("advice  {note}"))?;
    }
    Ok(())
}
