use std::collections::BTreeMap;
use std::fmt::Write as _;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value, context};

use super::TextError;

const NAME: &str = "chat_template";

/// Work granted to every render; one unit is an instruction or 64 bytes of data.
const FUEL_BASE: u64 = 200_000;
/// Work granted on top for each message, so that long conversations are not cut off.
const FUEL_PER_MESSAGE: u64 = 2_000;
/// Address space for the stack of a render; only what is used becomes memory.
const RENDER_STACK: usize = 256 << 20;
/// JSON nested deeper than this is refused, because it is written recursively.
const MAX_JSON_DEPTH: usize = 128;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_filter("tojson", to_json);
        environment.add_template_owned(NAME, source.into()).map_err(syntax_error)?;
        Ok(Self { environment, bos, eos })
    }

    /// Writes the conversation in the form the model was trained on.
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
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL_BASE + FUEL_PER_MESSAGE * messages.len() as u64 + bytes as u64 / 2));
        let variables = Value::from(variables);
        let run = || environment.get_template(NAME).and_then(|template| template.render(variables));
        // Values can be nested as deep as the fuel allows, and even dropping them is recursive.
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(NAME.to_owned()).stack_size(RENDER_STACK);
            thread.spawn_scoped(scope, run).map(|handle| handle.join())
        });
        match outcome {
            Ok(Ok(Ok(text))) => Ok(text),
            Ok(Ok(Err(error))) => Err(render_error(explain(&error))),
            Ok(Err(_)) => Err(render_error((None, "the template engine panicked".to_owned()))),
            Err(error) => Err(render_error((None, format!("no thread to render on: {error}")))),
        }
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
        self.state.consume_fuel(text.len() as u64 / 64)?;
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
        self.state.consume_fuel(width as u64 / 64)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width));
        Ok(())
    }
}
