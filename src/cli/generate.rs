//! Greedy generation, token by token.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::interrupt;
use crate::exec::{Engine, argmax};
use crate::text::Detokenizer;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model chose a token that ends its turn.
    Stop,
    /// As many tokens as were asked for.
    Length,
    /// The context is full.
    Context,
    /// Ctrl-C.
    Interrupted,
}

impl Finish {
    pub const fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Context => "context",
            Finish::Interrupted => "interrupted",
        }
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub ids: Vec<u32>,
    /// The last token was chosen, and is not in the engine's sequence.
    pub last_is_open: bool,
    pub text: String,
    pub finish: Finish,
    /// Those that were computed.
    pub prompt_tokens: usize,
    pub prompt_time: Duration,
    /// Time of the tokens behind the first one.
    pub decode_time: Duration,
}

impl Answer {
    pub fn prompt_per_second(&self) -> f64 {
        self.prompt_tokens as f64 / self.prompt_time.as_secs_f64().max(1e-9)
    }

    /// Steps of one token: the first token of the answer comes with the prompt.
    pub fn decode_steps(&self) -> usize {
        self.ids.len().saturating_sub(1)
    }

    pub fn decode_per_second(&self) -> f64 {
        self.decode_steps() as f64 / self.decode_time.as_secs_f64().max(1e-9)
    }

    pub fn timings(&self, load: Duration) -> Value {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        json!({
            "load_ms": milliseconds(load),
            "prompt_tokens": self.prompt_tokens,
            "prompt_ms": milliseconds(self.prompt_time),
            "decode_tokens": self.decode_steps(),
            "decode_ms": milliseconds(self.decode_time),
        })
    }
}

/// Continues `ids`, of which no more is computed than is not known, by at most `n` tokens; `show` gets each id with the text that it completes.
pub fn generate(
    engine: &mut Engine,
    ids: &[u32],
    n: usize,
    mut show: impl FnMut(u32, &str) -> Result<()>,
) -> Result<Answer> {
    let model = engine.shared_model();
    let tokenizer = model.tokenizer();
    let mut detokenizer = Detokenizer::new(tokenizer, false);
    let begin = Instant::now();
    let known = engine.prompt(ids)?;
    let mut next = argmax(engine.logits().unwrap_or_default());
    let mut answer = Answer {
        ids: Vec::new(),
        last_is_open: false,
        text: String::new(),
        finish: Finish::Length,
        prompt_tokens: ids.len() - known,
        prompt_time: begin.elapsed(),
        decode_time: Duration::ZERO,
    };
    let begin = Instant::now();
    while answer.ids.len() < n {
        answer.ids.push(next);
        answer.last_is_open = true;
        if tokenizer.stop_ids().contains(&next) {
            answer.finish = Finish::Stop;
            break;
        }
        let piece = detokenizer.push(next);
        show(next, &piece)?;
        answer.text.push_str(&piece);
        if answer.ids.len() == n {
            break;
        }
        if interrupt::asked() {
            answer.finish = Finish::Interrupted;
            break;
        }
        if engine.position() == engine.plan().options.context {
            answer.finish = Finish::Context;
            break;
        }
        next = argmax(engine.feed(&[next])?);
        answer.last_is_open = false;
    }
    answer.decode_time = begin.elapsed();
    let rest = detokenizer.finish();
    if !rest.is_empty() {
        answer.text.push_str(&rest);
        if let Some(last) = answer.ids.last() {
            show(*last, &rest)?;
        }
    }
    Ok(answer)
}
