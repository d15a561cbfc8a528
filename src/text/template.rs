use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, context};

use super::TextError;

const NAME: &str = "chat_template";

/// Work granted to every render; one unit is an instruction or [`BYTES_PER_FUEL`] of data.
const FUEL_BASE: u64 = 50_000;
/// Work granted on top for each message, so that long conversations are not cut off.
const FUEL_PER_MESSAGE: u64 = 2_000;
/// Bytes that a unit of work pays for.
const BYTES_PER_FUEL: u64 = 64;
/// Address space for the stack of a render, and more of it for each unit of work, because values can be nested as deep
/// as the work allows. Only what is used becomes memory.
const STACK_BASE: u64 = 64 << 20;
const STACK_PER_FUEL: u64 = 512;
const MAX_STACK: u64 = 4 << 30;
/// Longest time of a render, and more of it for each byte of the messages. Not all work is paid for: to compare or to
/// join lists that share their elements can take for ever.
const MAX_TIME: Duration = Duration::from_secs(5);
const MAX_TIME_PER_BYTE: Duration = Duration::from_micros(1);
/// Longest text of an error.
const MAX_DETAIL_CHARS: usize = 1000;
/// JSON nested deeper than this is refused, because it is written recursively.
const MAX_JSON_DEPTH: usize = 128;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// Who speaks: `system`, `user`, `assistant` or whatever else the template knows.
    pub role: String,
    /// What is said.
    pub content: String,
}

/// Switches of a render.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Whether to end with the opening of the assistant's turn.
    pub add_generation_prompt: bool,
    /// The thinking switch; `None` leaves the choice to the template.
    pub enable_thinking: Option<bool>,
}

/// A compiled chat template.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: Option<String>,
    eos: Option<String>,
}

impl ChatTemplate {
    /// Compiles a template; `bos` and `eos` are what it sees as `bos_token` and `eos_token`.
    pub fn new(source: impl Into<String>, bos: Option<String>, eos: Option<String>) -> Result<Self, TextError> {
        let mut environment = Environment::new();
        // The whitespace rules and lenient undefined values that templates are written against.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(syntax_error)?);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_unknown_method_callback(call_method);
        environment.set_formatter(print);
        environment.add_function("raise_exception", raise_exception);
        environment.add_filter("tojson", to_json);
        environment.add_template_owned(NAME, source.into()).map_err(syntax_error)?;
        Ok(Self { environment, bos, eos })
    }

    /// Writes the conversation in the form the model was trained on.
    ///
    /// # Errors
    /// When the template fails, has used up the work it is granted, or takes too long. After the last the template should
    /// not be used again: nothing can end the thread that it runs on.
    pub fn render(&self, messages: &[Message], options: RenderOptions) -> Result<String, TextError> {
        let turns = messages.iter().map(|message| context! { role => &*message.role, content => &*message.content });
        let mut variables = BTreeMap::from([
            ("messages", Value::from(turns.collect::<Vec<_>>())),
            ("add_generation_prompt", Value::from(options.add_generation_prompt)),
        ]);
        // Templates test these with `is defined`, so an absent one must stay undefined.
        variables.extend(options.enable_thinking.map(|on| ("enable_thinking", Value::from(on))));
        variables.extend(self.bos.as_deref().map(|text| ("bos_token", Value::from(text))));
        variables.extend(self.eos.as_deref().map(|text| ("eos_token", Value::from(text))));

        let bytes: usize = messages.iter().map(|message| message.role.len() + message.content.len()).sum();
        let fuel = FUEL_BASE + FUEL_PER_MESSAGE * messages.len() as u64 + bytes as u64 / 2;
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel));
        let variables = Value::from(variables);
        let limit = MAX_TIME + MAX_TIME_PER_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
        let (sender, receiver) = sync_channel(1);
        let run = move || {
            let outcome = environment.get_template(NAME).and_then(|template| template.render(variables));
            // Nobody waits any more if it took too long.
            let _ = sender.send(outcome.map_err(|error| render_error(explain(&error))));
        };
        let stack = (STACK_BASE + STACK_PER_FUEL.saturating_mul(fuel)).min(MAX_STACK) as usize;
        let failed = |detail: String| Err(render_error((None, detail)));
        // The thread is left to itself if it takes too long, since nothing can end it.
        if let Err(error) = thread::Builder::new().name(NAME.to_owned()).stack_size(stack).spawn(run) {
            return failed(format!("no thread to render on: {error}"));
        }
        match receiver.recv_timeout(limit) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Disconnected) => failed("the template engine panicked".to_owned()),
            Err(RecvTimeoutError::Timeout) => Err(TextError::TemplateTime { seconds: limit.as_secs() }),
        }
    }
}

/// Methods of Python's types, but for the one that makes a text as long as its argument says.
fn call_method(state: &mut State, value: &Value, method: &str, arguments: &[Value]) -> Result<Value, Error> {
    if method == "format" {
        return Err(Error::from(ErrorKind::UnknownMethod));
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
}

/// Writes a value, and no more of it than can be paid for: it is paid for when all of it is written, and lists that
/// share their elements are far longer than they are large.
fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let left = state.fuel_levels().map_or(u64::MAX, |(_, left)| left.saturating_mul(BYTES_PER_FUEL));
    write!(Limited { out, left }, "{value}").map_err(|_| Error::from(ErrorKind::OutOfFuel))
}

/// Fails when more than `left` bytes are written.
struct Limited<'a, 'o> {
    out: &'a mut Output<'o>,
    left: u64,
}

impl Write for Limited<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len() as u64).ok_or(fmt::Error)?;
        self.out.write_str(text)
    }
}

fn render_error((line, detail): (Option<usize>, String)) -> TextError {
    TextError::TemplateRender { line, detail }
}

fn syntax_error(error: Error) -> TextError {
    let (line, detail) = explain(&error);
    TextError::TemplateSyntax { line, detail }
}

fn raise_exception(message: &str) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.to_owned()))
}

/// Line and text of an error; the innermost cause is the one that says something.
fn explain(error: &Error) -> (Option<usize>, String) {
    let mut detail = error.kind().to_string();
    if let Some(more) = error.detail() {
        let _ = write!(detail, ": {more}");
    }
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let _ = write!(detail, "; {cause}");
        source = cause.source();
    }
    // The template chooses the text of its errors.
    if let Some((end, _)) = detail.char_indices().nth(MAX_DETAIL_CHARS) {
        detail.truncate(end);
        detail.push('…');
    }
    (error.line(), detail)
}

/// `tojson` as chat templates expect it: Python's spacing, no escapes for HTML or for letters beyond ASCII.
fn to_json(state: &State, value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent = options.get::<Option<usize>>("indent")?;
    if options.get::<Option<bool>>("ensure_ascii")? == Some(true) {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson knows ensure_ascii=false only"));
    }
    options.assert_all_used()?;
    let mut out = String::new();
    JsonWriter { state, indent }.value(&mut out, value, 0)?;
    Ok(Value::from(out))
}

struct JsonWriter<'a> {
    state: &'a State<'a, 'a>,
    indent: Option<usize>,
}

impl JsonWriter<'_> {
    fn value(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        // Shared sublists make the text far larger than the value, so it is paid for while it is written.
        self.state.consume_fuel(1)?;
        if depth > MAX_JSON_DEPTH {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("tojson got a value nested deeper than {MAX_JSON_DEPTH} levels"),
            ));
        }
        match value.kind() {
            ValueKind::Undefined | ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => {
                let _ = write!(out, "{value}");
            }
            ValueKind::Seq | ValueKind::Iterable => {
                out.push('[');
                let mut empty = true;
                for item in value.try_iter()? {
                    self.separate(out, empty, depth + 1)?;
                    self.value(out, &item, depth + 1)?;
                    empty = false;
                }
                self.close(out, ']', empty, depth)?;
            }
            ValueKind::Map => {
                out.push('{');
                let mut empty = true;
                for key in value.try_iter()? {
                    self.separate(out, empty, depth + 1)?;
                    self.string(out, &key)?;
                    out.push_str(": ");
                    self.value(out, &value.get_item(&key)?, depth + 1)?;
                    empty = false;
                }
                self.close(out, '}', empty, depth)?;
            }
            _ => self.string(out, value)?,
        }
        Ok(())
    }

    fn string(&self, out: &mut String, value: &Value) -> Result<(), Error> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.state.consume_fuel(text.len() as u64 / BYTES_PER_FUEL)?;
        out.push_str(&serde_json::Value::from(text).to_string());
        Ok(())
    }

    fn separate(&self, out: &mut String, first: bool, depth: usize) -> Result<(), Error> {
        match (first, self.indent) {
            (true, None) => Ok(()),
            (false, None) => {
                out.push_str(", ");
                Ok(())
            }
            (first, Some(indent)) => {
                if !first {
                    out.push(',');
                }
                self.new_line(out, indent, depth)
            }
        }
    }

    fn close(&self, out: &mut String, bracket: char, empty: bool, depth: usize) -> Result<(), Error> {
        if let (false, Some(indent)) = (empty, self.indent) {
            self.new_line(out, indent, depth)?;
        }
        out.push(bracket);
        Ok(())
    }

    fn new_line(&self, out: &mut String, indent: usize, depth: usize) -> Result<(), Error> {
        let width = indent.saturating_mul(depth);
        self.state.consume_fuel(width as u64 / BYTES_PER_FUEL)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width));
        Ok(())
    }
}
