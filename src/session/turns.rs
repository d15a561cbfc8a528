//! A sequence that is saved after every turn under one name.

use super::{Base, KeepError, Keeper, Restored};
use crate::exec::Engine;
use crate::state::{Info, Saved, SessionError, SnapshotId, Store};

/// Deltas on top of each other, after which the whole state is written again.
const DELTAS_MAX: usize = 4;

/// The name always has the newest complete state. What others need of the states before has names of its own, `NAME.turn-1` and
/// so on, which no other session can be given.
#[derive(Debug)]
pub struct TurnFile {
    name: String,
    compress: bool,
    /// What the next state can be a delta of.
    base: Option<Base>,
    /// What this file wrote last, or began with.
    newest: Option<SnapshotId>,
}

impl TurnFile {
    /// A sequence that is not saved yet, or goes on from another session. What has the name is replaced.
    pub fn new(name: &str, compress: bool, from: Option<Base>) -> TurnFile {
        TurnFile { name: name.to_owned(), compress, base: from, newest: None }
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
        let newest = Some(restored.base.id);
        Ok((TurnFile { name: name.to_owned(), compress, base: Some(restored.base.clone()), newest }, restored))
    }

    /// Tokens of the state that was saved last; empty if none was.
    pub fn saved_ids(&self) -> &[u32] {
        self.base.as_ref().filter(|base| Some(base.id) == self.newest).map_or(&[], |base| &base.ids)
    }

    /// Saves the engine's sequence at the end of a turn. Wherever that is cut off, the name has the state before or after it.
    ///
    /// # Errors
    /// As [`Keeper::save`], and [`KeepError::Changed`] if another program saved under this name meanwhile.
    pub fn save(&mut self, keeper: &Keeper, engine: &mut Engine, notes: Option<&[u8]>) -> Result<(), KeepError> {
        let store = keeper.store();
        let before = match store.inspect(&self.name, false) {
            Ok(info) => Some(info),
            Err(SessionError::NotFound { .. } | SessionError::Damaged { .. } | SessionError::Version { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let (Some(newest), Some(before)) = (self.newest, &before)
            && before.id != newest
        {
            return Err(KeepError::Changed { name: self.name.clone() });
        }
        let saved = match self.delta_base(store, before.as_ref(), engine.ids()) {
            Some(base) => match self.write(keeper, engine, notes, Some(&base)) {
                // It has gone, or so many deltas lie below it that there can be no more.
                Err(KeepError::Session(SessionError::Parent { .. })) => self.write(keeper, engine, notes, None)?,
                result => result?,
            },
            None => self.write(keeper, engine, notes, None)?,
        };
        self.base = Some(Base { id: saved.id, ids: engine.ids().to_vec() });
        self.newest = Some(saved.id);
        // What is left is deleted another time.
        let _ = delete_turns(store, &self.name);
        Ok(())
    }

    /// What the next state is to be a delta of, kept under another name if this one has it.
    fn delta_base(&self, store: &Store, before: Option<&Info>, ids: &[u32]) -> Option<Base> {
        let base = self.base.as_ref().filter(|base| base.is_beginning_of(ids))?;
        let Some(before) = before.filter(|before| before.id == base.id) else { return Some(base.clone()) };
        // Where there can be no second name, the whole state is written.
        (before.chain.len() < DELTAS_MAX && keep_aside(store, &self.name, before.id).is_ok()).then(|| base.clone())
    }

    /// Saves; a state that another session needs of this name is kept under another one first.
    fn write(
        &self,
        keeper: &Keeper,
        engine: &mut Engine,
        notes: Option<&[u8]>,
        base: Option<&Base>,
    ) -> Result<Saved, KeepError> {
        match keeper.write_of(engine, &self.name, notes, self.compress, base) {
            Err(KeepError::Session(SessionError::Needed { .. })) => {
                let store = keeper.store();
                keep_aside(store, &self.name, store.inspect(&self.name, false)?.id)?;
                keeper.write_of(engine, &self.name, notes, self.compress, base)
            }
            result => result,
        }
    }

    /// Deletes a sequence with the states before that only it needs.
    ///
    /// # Errors
    /// When another session needs its newest state.
    pub fn delete(keeper: &Keeper, name: &str) -> Result<(), KeepError> {
        keeper.store().delete(name, false)?;
        Ok(delete_turns(keeper.store(), name)?)
    }
}

/// The name and number of a state before a name's newest; `None` for other names.
pub(super) fn turn_of(file: &str) -> Option<(&str, usize)> {
    let (name, turn) = file.rsplit_once(".turn-")?;
    Some((name, turn.parse().ok()?))
}

/// Numbers of the states before a name's newest, ascending, with what they are.
fn turns(store: &Store, name: &str) -> Result<Vec<(usize, Option<SnapshotId>)>, SessionError> {
    let entries = store.list()?;
    let turn = |file: &str| turn_of(file).filter(|(of, _)| *of == name).map(|(_, turn)| turn);
    let mut turns: Vec<_> = entries
        .iter()
        .filter_map(|entry| Some((turn(&entry.name)?, entry.info.as_ref().ok().map(|info| info.id))))
        .collect();
    turns.sort_unstable_by_key(|(turn, _)| *turn);
    Ok(turns)
}

/// Gives a name's state a second name, unless it has one.
fn keep_aside(store: &Store, name: &str, id: SnapshotId) -> Result<(), SessionError> {
    let turns = turns(store, name)?;
    if turns.iter().any(|(_, known)| *known == Some(id)) {
        return Ok(());
    }
    let next = turns.last().map_or(1, |(turn, _)| turn + 1);
    store.duplicate(name, &format!("{name}.turn-{next}"))
}

/// Deletes the states before a name's newest which no session needs.
fn delete_turns(store: &Store, name: &str) -> Result<(), SessionError> {
    for (turn, _) in turns(store, name)?.into_iter().rev() {
        match store.delete(&format!("{name}.turn-{turn}"), false) {
            Err(SessionError::Needed { .. } | SessionError::NotFound { .. }) => {}
            other => other?,
        }
    }
    Ok(())
}
