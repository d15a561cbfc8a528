//! `demo`: the main job on the model that is part of the program.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::args::DemoArgs;
use super::cards::names;
use super::engine::{Opened, open_engine};
use super::generate::{Finish, generate};
use super::output::Output;
use super::run::{chat_prompt, prompt_ids};
use super::{Done, interrupt};
use crate::demo::MODEL;
use crate::device::Card;
use crate::load::Model;

/// Tokens of context: the longest prompt and its answer fit.
const CONTEXT: usize = 1024;

const QUESTIONS: [&str; 3] = ["What is the capital of France?", "Repeat after me: silver garden tiger", "Hello!"];
const STORY: &str = "Once upon a time";

pub fn demo(args: &DemoArgs, output: &mut Output) -> Result<Done> {
    let Opened { mut engine, load, records } = open_engine(Model::from_static(MODEL)?, &args.engine, CONTEXT)?;
    let model = engine.shared_model();
    // From here on; while loading, Ctrl-C ends the program at once.
    interrupt::listen();
    let mut answers = Vec::new();
    let (mut prompt_tokens, mut prompt_time, mut steps, mut decode_time) = (0, Duration::ZERO, 0, Duration::ZERO);
    let mut done = Done::Finished;
    for (i, question) in QUESTIONS.into_iter().chain([STORY]).enumerate() {
        let is_chat = i < QUESTIONS.len();
        let text = if is_chat { chat_prompt(&model, None, question, Some(false))? } else { question.to_owned() };
        let prompt = prompt_ids(&model, &text)?;
        if !args.json {
            output.text(&if is_chat { format!("> {question}\n") } else { question.to_owned() })?;
        }
        engine.reset()?;
        let answer =
            generate(
                &mut engine,
                &prompt,
                args.n.max(1),
                |_, piece| if args.json { Ok(()) } else { output.text(piece) },
            )?;
        if !args.json {
            output.line("\n")?;
        }
        prompt_tokens += answer.prompt_tokens;
        prompt_time += answer.prompt_time;
        steps += answer.decode_steps();
        decode_time += answer.decode_time;
        answers.push(json!({
            "prompt_ids": prompt,
            "ids": answer.ids,
            "text": answer.text,
            "finish_reason": answer.finish.name(),
            "timings": answer.timings(load),
        }));
        if answer.finish == Finish::Interrupted {
            done = Done::Interrupted;
            break;
        }
    }
    let cards: Vec<Card> = engine.cards().cloned().collect();
    let info = cards[0].info();
    let per_second = |count: usize, time: Duration| count as f64 / time.as_secs_f64().max(1e-9);
    if args.json {
        output.json(&json!({ "device": info.name, "backend": info.backend, "cards": cards.len(), "load_ms": load.as_millis() as u64, "answers": answers }))?;
    } else {
        output.line(format_args!("device   {}", names(&cards)))?;
        output.line(format_args!("start    {:.2} s", load.as_secs_f64()))?;
        output.line(format_args!(
            "prompts  {prompt_tokens} tokens, {:.1} tok/s",
            per_second(prompt_tokens, prompt_time)
        ))?;
        output.line(format_args!("answers  {steps} steps, {:.1} tok/s", per_second(steps, decode_time)))?;
    }
    records.finish(engine)?;
    Ok(done)
}
