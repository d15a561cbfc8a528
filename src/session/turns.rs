//! A sequence that is saved after every turn under one name.

use super::{Base, KeepError, Keeper, Restored};
use crate::exec::Engine;
use crate::state::{SessionError, Store};

/// Deltas on top of each other, after which the whole state is written again.
const DELTAS_MAX: usize = 4;

/// The name always has the newest complete state. The states that this is a delta of have names of their own, `NAME.turn-1` and so on.
#[derive(Debug)]
pub struct TurnFile {
    name: String,
    compress: bool,
    saved: Option<Base>,
    /// States below the newest that have this file's names.
    below: usize,
}

impl TurnFile {
    /// A sequence that is not saved yet, or goes on from another session.
    pub fn new(name: &str, compress: bool, from: Option<Base>) -> TurnFile {
        TurnFile { name: name.to_owned(), compress, saved: from, below: 0 }
    }

    /// Goes on with the session of this name.
    ///
    /// # Errors
    /// As [`Keeper::restore`].
    pub fn restore(
        keeper: &Keeper,
        engine: &mut Engine,
        name: &str,
        compress: bool,
    ) -> Result<(TurnFile, Restored), KeepError> {
        let restored = keeper.restore(engine, name)?;
        let chain = keeper.store().inspect(name, false)?.chain;
        let mine = |link: &&crate::state::Link| link.name.as_deref().is_some_and(|link| turn_of(name, link).is_some());
        let below = chain.iter().take_while(mine).count();
        let file = TurnFile { name: name.to_owned(), compress, saved: Some(restored.base.clone()), below };
        Ok((file, restored))
    }

    /// Saves the engine's sequence at the end of a turn. Wherever that is cut off, the name has the state before or after it.
    ///
    /// # Errors
    /// As [`Keeper::save`].
    pub fn save(&mut self, keeper: &Keeper, engine: &mut Engine, notes: Option<&[u8]>) -> Result<(), KeepError> {
        let store = keeper.store();
        let grows = |base: &&Base| engine.ids().len() > base.ids.len() && engine.ids().starts_with(&base.ids);
        let mut base = self.saved.as_ref().filter(grows).cloned();
        let replaced = store.inspect(&self.name, false).ok().map(|info| info.id);
        if let Some(replaces) = base.as_ref().map(|base| Some(base.id) == replaced)
            && replaces
        {
            if self.below + 1 < DELTAS_MAX {
                store.duplicate(&self.name, &turn_name(&self.name, self.below + 1))?;
                self.below += 1;
            } else {
                base = None;
            }
        }
        let saved = keeper.save(engine, &self.name, notes, self.compress, base.as_ref())?;
        self.saved = Some(Base { id: saved.id, ids: engine.ids().to_vec() });
        if base.is_none() {
            self.below = 0;
            delete_turns(store, &self.name)?;
        }
        Ok(())
    }

    /// Deletes a sequence with the states that only it needs.
    ///
    /// # Errors
    /// When another session needs its newest state.
    pub fn delete(keeper: &Keeper, name: &str) -> Result<(), KeepError> {
        keeper.store().delete(name, false)?;
        Ok(delete_turns(keeper.store(), name)?)
    }
}

fn turn_name(name: &str, turn: usize) -> String {
    format!("{name}.turn-{turn}")
}

/// The number of a state below a name's newest.
fn turn_of(name: &str, file: &str) -> Option<usize> {
    file.strip_prefix(name)?.strip_prefix(".turn-")?.parse().ok()
}

/// Deletes the states below a name's newest which no other session needs.
fn delete_turns(store: &Store, name: &str) -> Result<(), SessionError> {
    let mut turns: Vec<usize> = store.list()?.iter().filter_map(|entry| turn_of(name, &entry.name)).collect();
    turns.sort_unstable();
    for turn in turns.into_iter().rev() {
        match store.delete(&turn_name(name, turn), false) {
            Err(SessionError::Needed { .. } | SessionError::NotFound { .. }) => {}
            other => other?,
        }
    }
    Ok(())
}
