//! Which sessions of a folder are deltas of which, by the headers of their files.

use std::collections::HashMap;

use super::SessionError;
use super::format::{Header, SnapshotId};

/// Most files that one state is put together from.
pub const CHAIN_MAX: usize = 64;

/// What a header says of a file's place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub name: String,
    pub id: SnapshotId,
    pub parent: Option<SnapshotId>,
    pub position: u64,
    pub from: u64,
}

impl Node {
    pub fn new(name: &str, header: &Header) -> Node {
        let Header { id, parent, position, from, .. } = *header;
        Node { name: name.to_owned(), id, parent, position, from }
    }

    /// Whether `other` has what this one is a delta of.
    pub fn adds_to(&self, other: &Node) -> bool {
        self.parent == Some(other.id) && self.from == other.position
    }
}

/// How a node reaches a whole session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// Files, with the node's own.
    length: usize,
    /// The file that it is a delta of.
    via: Option<usize>,
}

/// All files of a folder with a readable header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    nodes: Vec<Node>,
    /// The shortest way of each node, if there is one.
    ways: Vec<Option<Way>>,
}

impl Index {
    pub fn new(mut nodes: Vec<Node>) -> Index {
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let mut ways = vec![None; nodes.len()];
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|node| nodes[*node].position);
        let mut best: HashMap<(SnapshotId, u64), usize> = HashMap::new();
        // A parent ends where its delta begins, which is before the delta's end: there are no circles.
        for index in order {
            let node = &nodes[index];
            let length_of = |index: usize, ways: &[Option<Way>]| ways[index].map_or(usize::MAX, |way| way.length);
            ways[index] = match node.parent {
                None => Some(Way { length: 1, via: None }),
                Some(parent) => best.get(&(parent, node.from)).filter(|_| node.from < node.position).and_then(|via| {
                    let length = length_of(*via, &ways).checked_add(1)?;
                    (length <= CHAIN_MAX).then_some(Way { length, via: Some(*via) })
                }),
            };
            let Some(way) = ways[index] else { continue };
            let known = best.entry((node.id, node.position)).or_insert(index);
            // Of equally short ones the first by name.
            if (way.length, index) < (length_of(*known, &ways), *known) {
                *known = index;
            }
        }
        Index { nodes, ways }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.find(name).map(|index| &self.nodes[index])
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.nodes.binary_search_by(|node| node.name.as_str().cmp(name)).ok()
    }

    /// The index with a node put in its name's place, or with none of this name.
    pub fn with(&self, name: &str, node: Option<Node>) -> Index {
        Index::new(self.nodes.iter().filter(|node| node.name != name).cloned().chain(node).collect())
    }

    /// The files that a session is put together from, itself first; `None` if they are not all there.
    pub fn chain(&self, name: &str) -> Option<Vec<&Node>> {
        let mut chain = Vec::new();
        let mut next = self.find(name);
        while let Some(index) = next {
            chain.push(&self.nodes[index]);
            next = self.ways[index]?.via;
        }
        (!chain.is_empty()).then_some(chain)
    }

    /// What a session that is put together from files is put together from, as far as they are there.
    pub fn links(&self, node: &Node) -> (Vec<(SnapshotId, Option<&Node>)>, Option<SessionError>) {
        let mut links = Vec::new();
        let mut node = node;
        loop {
            let Some(parent) = node.parent else { return (links, None) };
            let error = |what, expected: String, found: String| {
                let (session, parent) = (node.name.clone(), parent.to_string());
                Some(SessionError::Parent { session, parent, what, expected, found })
            };
            let fitting = self.nodes.iter().filter(|other| node.adds_to(other));
            let best = fitting.min_by_key(|other| self.chain(&other.name).map_or(usize::MAX, |chain| chain.len()));
            let Some(best) = best else {
                links.push((parent, None));
                let other = self.nodes.iter().find(|other| other.id == parent);
                return (
                    links,
                    match other {
                        Some(other) => {
                            error("position", node.from.to_string(), format!("{} in {}", other.position, other.name))
                        }
                        None => error("snapshot", "a file that has it".to_owned(), "none".to_owned()),
                    },
                );
            };
            links.push((parent, Some(best)));
            if links.len() >= CHAIN_MAX {
                return (links, error("chain", format!("at most {CHAIN_MAX} files"), "more".to_owned()));
            }
            node = best;
        }
    }

    /// Sessions that could be put together before, and cannot be any more.
    pub fn lost<'a>(&'a self, after: &Index) -> Vec<&'a Node> {
        let whole = |index: &Index, name: &str| index.chain(name).is_some();
        let there = self.nodes.iter().filter(|node| after.find(&node.name).is_some());
        there.filter(|node| whole(self, &node.name) && !whole(after, &node.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, id: u8, parent: Option<u8>, from: u64, position: u64) -> Node {
        let hash = |id: u8| SnapshotId([id; 32]);
        Node { name: name.to_owned(), id: hash(id), parent: parent.map(hash), position, from }
    }

    fn names(index: &Index, name: &str) -> Option<Vec<String>> {
        index.chain(name).map(|chain| chain.into_iter().map(|node| node.name.clone()).collect())
    }

    #[test]
    fn the_shortest_chain_is_taken() {
        let index = Index::new(vec![
            node("a", 1, None, 0, 4),
            node("b", 2, Some(1), 4, 6),
            node("b2", 2, None, 0, 6),
            node("c", 3, Some(2), 6, 9),
        ]);
        assert_eq!(names(&index, "c").unwrap(), ["c", "b2"]);
        let without = index.with("b2", None);
        assert_eq!(names(&without, "c").unwrap(), ["c", "b", "a"]);
        assert!(index.lost(&without).is_empty());
        let lost: Vec<&str> = without.lost(&without.with("a", None)).iter().map(|node| node.name.as_str()).collect();
        assert_eq!(lost, ["b", "c"]);
    }

    #[test]
    fn circles_and_wrong_positions_lead_nowhere() {
        let index = Index::new(vec![node("a", 1, Some(2), 4, 5), node("b", 2, Some(1), 3, 4)]);
        assert_eq!(names(&index, "a"), None);
        let text = index.links(index.get("a").unwrap()).1.unwrap().to_string();
        assert!(
            text.contains("session b: parent 0101") && text.contains("position: expected 3, found 5 in a"),
            "{text}"
        );
        let own = Index::new(vec![node("a", 1, Some(1), 4, 5)]);
        assert_eq!(names(&own, "a"), None);
    }

    #[test]
    fn chains_have_a_longest_length() {
        let count = CHAIN_MAX as u8;
        let nodes =
            (0..=count).map(|i| node(&format!("{i:03}"), i + 1, (i > 0).then_some(i), i.into(), u64::from(i) + 1));
        let index = Index::new(nodes.collect());
        assert_eq!(names(&index, &format!("{:03}", count - 1)).unwrap().len(), CHAIN_MAX);
        let last = index.get(&format!("{count:03}")).unwrap();
        assert_eq!(names(&index, &last.name), None);
        assert!(index.links(last).1.unwrap().to_string().contains("chain: expected at most 64 files, found more"));
    }
}
