//! Where in a prompt snapshots are taken.

/// Tokens between two snapshots at least, so that short turns do not cut a prompt into small chunks.
const MARKS_APART: usize = 64;

/// Positions in a prompt behind which a snapshot may be of use to later prompts, ascending: after tokens that end a turn, the system prompt's being the
/// first, and after every `every` tokens without one. Positions up to `from` are known already.
pub fn marks(ids: &[u32], from: usize, turn_ends: &[u32], every: Option<usize>) -> Vec<usize> {
    let mut marks = Vec::new();
    let mut last = from;
    // The last turn's end counts however near it is: what follows it is what the next prompt changes.
    let last_end = ids.iter().rposition(|id| turn_ends.contains(id)).map(|at| at + 1);
    for position in from + 1..ids.len() {
        let ends_turn = turn_ends.contains(&ids[position - 1]);
        let apart = position - last;
        let due = every.is_some_and(|every| apart >= every.max(1));
        if due || ends_turn && (apart >= MARKS_APART || Some(position) == last_end) {
            marks.push(position);
            last = position;
        }
    }
    marks
}
