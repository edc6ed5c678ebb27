//! The imports between the files of a crate, and the circles in them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// For each file the files that it imports, with the imports: line and path as written.
#[derive(Debug, Default)]
pub(super) struct Graph(BTreeMap<String, BTreeMap<String, Vec<(usize, String)>>>);

impl Graph {
    /// Adds an import. A file that names itself imports nothing.
    pub(super) fn add(&mut self, user: &str, used: &str, line: usize, path: String) {
        if user != used {
            let imports = self.0.entry(user.to_owned()).or_default();
            imports.entry(used.to_owned()).or_default().push((line, path));
        }
    }

    /// Returns the imports of `used` in `user`.
    pub(super) fn imports(&self, user: &str, used: &str) -> &[(usize, String)] {
        self.0.get(user).and_then(|imports| imports.get(used)).map_or(&[], Vec::as_slice)
    }

    /// Returns the strongly connected components of two files or more, largest first: from each
    /// file of a component imports lead to each other file of it.
    pub(super) fn components(&self) -> Vec<BTreeSet<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.0.keys().map(|file| (file.as_str(), self.reached(file))).collect();
        let mut components: Vec<BTreeSet<&str>> = Vec::new();
        for (file, others) in &reached {
            let leads_back = |other: &&str| reached.get(other).is_some_and(|r| r.contains(file));
            let is_known = components.iter().any(|component| component.contains(file));
            if !is_known && others.contains(file) {
                components.push(others.iter().copied().filter(leads_back).collect());
            }
        }
        components.sort_by_key(|component| std::cmp::Reverse(component.len()));
        components
    }

    /// Returns the shortest circle in a component, with its first file again at the end.
    pub(super) fn shortest<'a>(&'a self, component: &BTreeSet<&'a str>) -> Vec<&'a str> {
        let circles = component.iter().filter_map(|file| self.circle(file, component));
        circles.min_by_key(Vec::len).unwrap_or_default()
    }

    fn used(&self, file: &str) -> impl Iterator<Item = &str> {
        self.0.get(file).into_iter().flat_map(|imports| imports.keys().map(String::as_str))
    }

    /// Returns every file to which imports lead from `start`; `start` only by a circle.
    fn reached(&self, start: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<&str> = self.used(start).collect();
        while let Some(file) = waiting.pop() {
            if reached.insert(file) {
                waiting.extend(self.used(file));
            }
        }
        reached
    }

    /// Returns the shortest circle from `start` through files of `component`.
    fn circle<'a>(&'a self, start: &'a str, component: &BTreeSet<&'a str>) -> Option<Vec<&'a str>> {
        let mut users: BTreeMap<&str, &str> = BTreeMap::new();
        let mut waiting = VecDeque::from([start]);
        while let Some(user) = waiting.pop_front() {
            for used in self.used(user).filter(|used| component.contains(used)) {
                if used == start {
                    let mut circle = vec![start, user];
                    while let Some(before) = users.get(circle[circle.len() - 1]) {
                        circle.push(before);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if !users.contains_key(used) {
                    users.insert(used, user);
                    waiting.push_back(used);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[&str]) -> Graph {
        let mut graph = Graph::default();
        for (user, used) in arrows.iter().map(|arrow| arrow.split_once('>').unwrap()) {
            graph.add(user, used, 1, format!("crate::{used}"));
        }
        graph
    }

    fn components(arrows: &[&str]) -> Vec<String> {
        let graph = graph(arrows);
        let joined = |component: BTreeSet<&str>| component.into_iter().collect::<String>();
        graph.components().into_iter().map(joined).collect()
    }

    #[test]
    fn components_are_found_largest_first() {
        assert_eq!(components(&["a>b", "b>c", "a>c", "a>a"]), Vec::<String>::new());
        let arrows = ["a>b", "b>a", "b>c", "c>d", "d>e", "e>c", "e>f"];
        assert_eq!(components(&arrows), ["cde", "ab"]);
        assert_eq!(components(&["a>b", "b>a", "b>c", "c>b"]), ["abc"]);
    }

    #[test]
    fn the_shortest_circle_is_in_order() {
        let graph = graph(&["a>b", "b>c", "c>d", "d>a", "c>b", "e>a"]);
        let component = graph.components().remove(0);
        assert_eq!(graph.shortest(&component), ["b", "c", "b"]);
        assert_eq!(graph.imports("b", "c"), [(1, "crate::c".to_owned())]);
    }

    #[test]
    fn a_circle_of_three_begins_and_ends_with_one_file() {
        let graph = graph(&["b>c", "c>a", "a>b"]);
        assert_eq!(graph.shortest(&graph.components()[0]), ["a", "b", "c", "a"]);
    }
}
