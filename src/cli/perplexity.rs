//! `perplexity`: windows of a text, the second half of each scored with at least half a window in front.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::json;

use super::args::PerplexityArgs;
use super::engine::{Opened, open_engine, open_model};
use super::output::Output;
use super::run::read_text;
use super::{Done, interrupt};

/// -ln of the probability of `id`.
fn negative_log_likelihood(logits: &[f32], id: u32) -> f64 {
    let top = logits.iter().fold(f64::NEG_INFINITY, |top, value| top.max(f64::from(*value)));
    let sum: f64 = logits.iter().map(|value| (f64::from(*value) - top).exp()).sum();
    top + sum.ln() - f64::from(logits[id as usize])
}

/// Mean and its standard error, from running sums.
#[derive(Default)]
struct Score {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Score {
    fn add(&mut self, nll: f64) {
        self.count += 1;
        self.sum += nll;
        self.squares += nll * nll;
    }

    fn perplexity(&self) -> f64 {
        (self.sum / self.count as f64).exp()
    }

    /// Standard error of the perplexity; 0 for a single value.
    fn error(&self) -> f64 {
        let n = self.count as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        if self.count < 2 { 0.0 } else { (variance / (n - 1.0)).sqrt() * mean.exp() }
    }
}

pub fn perplexity(args: &PerplexityArgs, output: &mut Output) -> Result<Done> {
    let model = open_model(&args.model)?;
    let (window, limit) = (args.ctx, model.bound().spec.context_length);
    if window < 4 || window > limit {
        bail!("--ctx: expected 4 to {limit} tokens, got {window}");
    }
    let tokenizer = model.tokenizer();
    let ids = tokenizer.encode(&read_text(&args.text)?, true)?;
    let windows = (ids.len() / window).min(args.windows.unwrap_or(usize::MAX));
    if windows == 0 {
        bail!("{}: expected at least one window of {window} tokens, found {} tokens", args.text.display(), ids.len());
    }
    let begin_id = if tokenizer.add_bos() { tokenizer.bos() } else { None };
    let Opened { mut engine, records, .. } = open_engine(model, &args.engine, window)?;
    // From here on; while loading, Ctrl-C ends the program at once.
    interrupt::listen();
    let mut score = Score::default();
    let begin = Instant::now();
    let mut done = 0;
    let terminal = std::io::stderr().is_terminal();
    for ids in ids.chunks_exact(window).take(windows) {
        if interrupt::asked() {
            break;
        }
        engine.reset()?;
        let mut fed = ids.to_vec();
        if let Some(id) = begin_id {
            fed[0] = id;
        }
        let (context, scored) = fed.split_at(window / 2);
        engine.feed(context)?;
        engine.feed_each(scored, |position, logits| {
            if let Some(next) = ids.get(position + 1) {
                score.add(negative_log_likelihood(logits, *next));
            }
        })?;
        done += 1;
        if terminal {
            eprint!("\r\x1b[Kwindow {done}/{windows}: perplexity {:.4} +/- {:.4}", score.perplexity(), score.error());
            let _ = std::io::stderr().flush();
        } else if done % 10 == 0 {
            eprintln!("window {done}/{windows}: perplexity {:.4} +/- {:.4}", score.perplexity(), score.error());
        }
    }
    if terminal {
        eprintln!();
    }
    records.finish(engine)?;
    if score.count == 0 {
        return Ok(Done::Interrupted);
    }
    let per_second = (done * window) as f64 / begin.elapsed().as_secs_f64();
    if args.json {
        output.json(&json!({
            "perplexity": score.perplexity(),
            "error": score.error(),
            "windows": done,
            "ctx": window,
            "scored_tokens": score.count,
            "tokens_per_second": per_second,
        }))?;
    } else {
        output.line(format_args!(
            "perplexity {:.4} +/- {:.4} over {} tokens in {done} windows of {window} ({per_second:.0} tok/s)",
            score.perplexity(),
            score.error(),
            score.count
        ))?;
    }
    Ok(if done < windows { Done::Interrupted } else { Done::Finished })
}
