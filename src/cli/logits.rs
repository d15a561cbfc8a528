//! `logits`: what the model says at every position, for comparing with an oracle.

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::args::LogitsArgs;
use super::engine::{Opened, open_engine, open_model};
use super::npy::NpyWriter;
use super::output::Output;
use super::{Done, interrupt};
use crate::exec::argmax;

/// Most likely tokens that are listed.
const TOP: usize = 5;

pub fn logits(args: &LogitsArgs, output: &mut Output) -> Result<Done> {
    let model = open_model(&args.model)?;
    let spec = &model.bound().spec;
    if args.ids.len() > spec.context_length {
        bail!(
            "--ids: expected at most {} ids, the model's context length, got {}",
            spec.context_length,
            args.ids.len()
        );
    }
    let vocab = spec.vocab;
    let mut file = args.out.as_deref().map(|path| NpyWriter::create(path, args.ids.len(), vocab)).transpose()?;
    interrupt::listen();
    let Opened { mut engine, records, .. } = open_engine(model, &args.engine, args.ids.len())?;
    let mut best = Vec::with_capacity(args.ids.len());
    let mut last = vec![0.0; vocab];
    let mut failed = None;
    // One chunk at a time, so that Ctrl-C is noticed.
    for ids in args.ids.chunks(args.engine.plan.chunk.max(1)) {
        if interrupt::asked() {
            return Ok(Done::Interrupted);
        }
        engine.feed_each(ids, |_, row| {
            best.push((argmax(row), row[argmax(row) as usize]));
            last.copy_from_slice(row);
            if let (Some(file), None) = (&mut file, &failed) {
                failed = file.row(row).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    if let Some(file) = file {
        file.finish().context("the logits were computed but not stored")?;
    }
    let mut order: Vec<usize> = (0..vocab).collect();
    order.sort_by(|a, b| last[*b].total_cmp(&last[*a]).then(a.cmp(b)));
    order.truncate(TOP);
    if args.json {
        let top: Vec<_> = order.iter().map(|id| json!({ "id": id, "logit": last[*id] })).collect();
        let (ids, values): (Vec<u32>, Vec<f32>) = best.into_iter().unzip();
        output.json(&json!({ "positions": args.ids.len(), "vocabulary": vocab, "argmax": ids, "argmax_logit": values, "last_top": top }))?;
    } else {
        output.line(format_args!("{} positions, vocabulary {vocab}; most likely after the last:", args.ids.len()))?;
        for id in order {
            let bytes = engine.model().tokenizer().token_bytes(id as u32).unwrap_or_default();
            output.line(format_args!(
                "{id:>7}  {:>10.5}  \"{}\"",
                last[id],
                String::from_utf8_lossy(bytes).escape_debug()
            ))?;
        }
    }
    records.finish(engine)?;
    Ok(Done::Finished)
}
