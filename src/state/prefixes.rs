//! Sequences of tokens as a tree of their beginnings, searched in one pass.

use std::collections::{BTreeMap, BTreeSet};

/// A place in the tree. It is never given to another node, so that an old one cannot be mistaken for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u64);

/// A sequence of tokens: its parent's, and then its own.
#[derive(Debug)]
pub(super) struct Node<T> {
    pub parent: Option<NodeId>,
    /// How many there are.
    pub children: usize,
    /// Tokens behind the parent's.
    ids: Vec<u32>,
    /// Tokens from the first one on.
    pub position: usize,
    /// Of all of them.
    hash: u64,
    pub value: T,
}

impl<T> Node<T> {
    /// Position of the parent.
    pub fn from(&self) -> usize {
        self.position - self.ids.len()
    }
}

/// A tree of sequences in which each is once.
///
/// Several children of a node may have a common beginning, and one may be a beginning of another. So a search does not go down the branches, but
/// compares hashes of the beginnings; the tokens themselves are compared along a single path.
#[derive(Debug)]
pub(super) struct Prefixes<T> {
    nodes: BTreeMap<NodeId, Node<T>>,
    /// Position, hash and node of all.
    hashes: BTreeSet<(usize, u64, NodeId)>,
    next: u64,
    multiplier: u64,
}

/// An odd number without a pattern. Who finds sequences with equal hashes makes searches slower, and changes no result.
const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;

impl<T> Prefixes<T> {
    pub const fn new() -> Prefixes<T> {
        Prefixes { nodes: BTreeMap::new(), hashes: BTreeSet::new(), next: 0, multiplier: MULTIPLIER }
    }

    /// # Panics
    /// If the node is not in the tree any more; so do all that are given one.
    pub fn node(&self, id: NodeId) -> &Node<T> {
        self.nodes.get(&id).expect("the node is in the tree")
    }

    pub fn value_mut(&mut self, id: NodeId) -> &mut T {
        &mut self.nodes.get_mut(&id).expect("the node is in the tree").value
    }

    /// All nodes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node<T>)> {
        self.nodes.iter().map(|(id, node)| (*id, node))
    }

    /// A node, its parent, and so on to the root.
    pub fn upwards(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &Node<T>)> {
        std::iter::successors(Some(id), |id| self.node(*id).parent).map(|id| (id, self.node(id)))
    }

    /// The deepest node that is a beginning of `ids`, of those that are accepted.
    pub fn deepest(&self, ids: &[u32], accepted: impl Fn(&Node<T>) -> bool) -> Option<NodeId> {
        self.search(ids, accepted, &mut 0)
    }

    /// The same, adding to `work` the tokens that are hashed or compared, and the nodes that are looked at: unless hashes of different sequences are
    /// equal, at most twice the tokens, and the nodes.
    fn search(&self, ids: &[u32], accepted: impl Fn(&Node<T>) -> bool, work: &mut usize) -> Option<NodeId> {
        let (mut hash, mut hashed, mut candidates) = (0, 0, Vec::new());
        for (position, expected, id) in &self.hashes {
            let Some(more) = ids.get(hashed..*position) else { break };
            (hash, hashed) = (self.hash(hash, more), *position);
            *work += 1 + more.len();
            if hash == *expected && accepted(self.node(*id)) {
                candidates.push(*id);
            }
        }
        let equal = |node: &Node<T>, work: &mut usize| {
            *work += node.ids.len();
            ids[node.from()..node.position] == node.ids
        };
        candidates.into_iter().rev().find(|id| self.upwards(*id).all(|(_, node)| equal(node, work)))
    }

    /// Continues the hash of a sequence.
    fn hash(&self, hash: u64, ids: &[u32]) -> u64 {
        ids.iter().fold(hash, |hash, id| hash.wrapping_mul(self.multiplier).wrapping_add(u64::from(*id)))
    }

    /// Adds a sequence that is not in the tree, whose deepest beginning there is `parent`.
    pub fn insert(&mut self, parent: Option<NodeId>, ids: &[u32], value: T) -> NodeId {
        let id = NodeId(self.next);
        self.next += 1;
        let parent_node = parent.map(|parent| self.nodes.get_mut(&parent).expect("the node is in the tree"));
        let (from, before) = parent_node.map_or((0, 0), |node| {
            node.children += 1;
            (node.position, node.hash)
        });
        let hash = self.hash(before, &ids[from..]);
        let node = Node { parent, children: 0, ids: ids[from..].to_vec(), position: ids.len(), hash, value };
        self.hashes.insert((node.position, hash, id));
        self.nodes.insert(id, node);
        id
    }

    /// Removes a node without children.
    pub fn remove(&mut self, id: NodeId) -> Node<T> {
        let node = self.nodes.remove(&id).expect("the node is in the tree");
        debug_assert_eq!(node.children, 0, "a node with children is removed");
        self.hashes.remove(&(node.position, node.hash, id));
        if let Some(parent) = node.parent {
            self.nodes.get_mut(&parent).expect("a parent is there as long as its children").children -= 1;
        }
        node
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.hashes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: usize = 262_144;
    const NODES: usize = 512;

    fn add(tree: &mut Prefixes<()>, ids: &[u32]) -> NodeId {
        let parent = tree.deepest(ids, |_| true);
        tree.insert(parent, ids, ())
    }

    /// What a search finds and how much it does, with a node at each multiple of 512 tokens, added in the order of these lengths.
    fn search_among(ids: &[u32], lengths: impl Iterator<Item = usize>, wanted: &[u32]) -> (Option<usize>, usize) {
        let mut tree = Prefixes::new();
        for length in lengths {
            add(&mut tree, &ids[..length]);
        }
        assert_eq!(tree.iter().count(), NODES);
        let mut work = 0;
        let found = tree.search(wanted, |_| true, &mut work);
        (found.map(|id| tree.node(id).position), work)
    }

    #[test]
    fn a_search_reads_no_token_more_than_twice() {
        let ids: Vec<u32> = (0..CONTEXT as u32).map(|at| at % 7).collect();
        let step = CONTEXT / NODES;
        let mut other = ids.clone();
        other[CONTEXT - 2] = 8;
        // Ascending, a node is the child of the one before. Descending, each has all its tokens.
        for (wanted, expected) in [(&ids, CONTEXT), (&other, CONTEXT - step)] {
            let most = 2 * CONTEXT + NODES;
            let (found, work) = search_among(&ids, (1..=NODES).map(|node| node * step), wanted);
            assert_eq!(found, Some(expected));
            assert!(work <= most, "{work} of {most} in a chain");
            let (found, work) = search_among(&ids, (1..=NODES).rev().map(|node| node * step), wanted);
            assert_eq!(found, Some(expected));
            assert!(work <= most, "{work} of {most} with common beginnings");
        }
    }

    #[test]
    fn equal_hashes_are_not_taken_for_equal_tokens() {
        // With this multiplier the hash is the sum of the ids: most sequences of one length have another's.
        let mut tree = Prefixes { multiplier: 1, ..Prefixes::new() };
        let sequences: Vec<Vec<u32>> =
            (0..1 << 10u32).map(|bits| (0..1 + bits as usize % 10).map(|at| bits >> at & 1).collect()).collect();
        let mut known: Vec<Vec<u32>> = Vec::new();
        for (at, ids) in sequences.iter().enumerate() {
            if at % 3 == 0 && !known.contains(ids) {
                add(&mut tree, ids);
                known.push(ids.clone());
            }
            let wanted = &sequences[at * 37 % sequences.len()];
            let expected = known.iter().filter(|known| wanted.starts_with(known)).map(Vec::len).max();
            let found = tree.deepest(wanted, |_| true).map(|id| tree.node(id).position);
            assert_eq!(found, expected, "{wanted:?} among {known:?}");
        }
    }
}
