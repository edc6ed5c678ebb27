//! The modules of a crate's target, and which file an import or a path leads to.

use super::graph::Graph;
use super::scan::{Scope, Use, scan};
use crate::tree::Tree;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Imports of imports that are followed; a longer chain is a circle of `use`.
const CHAIN_MAX: usize = 32;

/// The modules of a library or a program; the first is its root.
#[derive(Debug, Default)]
pub(super) struct Modules(Vec<Module>);

#[derive(Debug, Default)]
struct Module {
    file: String,
    parent: usize,
    modules: BTreeMap<String, usize>,
    /// Items by name; true for a trait.
    items: BTreeMap<String, bool>,
    imports: BTreeMap<String, Use>,
    scope: Scope,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target<'a> {
    Module(usize),
    /// The file that defines the item.
    Item {
        file: &'a str,
        is_trait: bool,
    },
}

impl Modules {
    /// Reads the target whose root is the file `path`.
    pub(super) fn read(tree: &Tree, path: &str) -> Result<Self> {
        let mut modules = Self::default();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        modules.read_file(tree, path, folder, 0)?;
        Ok(modules)
    }

    /// Adds the module of a file, whose own modules are in `folder`, and the modules in it.
    fn read_file(&mut self, tree: &Tree, path: &str, folder: &str, parent: usize) -> Result<usize> {
        let text = tree.get(path).with_context(|| format!("there is no file {path}"))?;
        self.add(tree, path, folder, scan(text), parent)
    }

    fn add(
        &mut self,
        tree: &Tree,
        file: &str,
        folder: &str,
        mut scope: Scope,
        parent: usize,
    ) -> Result<usize> {
        let index = self.0.len();
        self.0.push(Module { file: file.to_owned(), parent, ..Module::default() });
        for name in &scope.declared {
            let inner = format!("{folder}/{name}");
            let path = format!("{inner}.rs");
            let module = self.read_file(tree, &path, &inner, index)?;
            self.0[index].modules.insert(name.clone(), module);
        }
        for inline in std::mem::take(&mut scope.inline) {
            let name = inline.name.clone();
            let module = self.add(tree, file, &format!("{folder}/{name}"), inline, index)?;
            self.0[index].modules.insert(name, module);
        }
        let module = &mut self.0[index];
        module.items = scope.items.iter().map(|item| (item.name.clone(), item.is_trait)).collect();
        let named = scope.uses.iter().filter_map(|found| Some((found.alias.clone()?, found)));
        module.imports = named.map(|(name, found)| (name, found.clone())).collect();
        module.scope = scope;
        Ok(index)
    }

    /// Adds the imports of every module.
    pub(super) fn add_imports(&self, graph: &mut Graph) {
        for (index, module) in self.0.iter().enumerate() {
            let same_file = self.0.iter().filter(|other| other.file == module.file);
            let mentions: BTreeSet<&str> =
                same_file.flat_map(|m| m.scope.mentions.iter().map(String::as_str)).collect();
            for found in &module.scope.uses {
                let Some(target) = self.resolve(index, &found.path, found.is_module, 0) else {
                    continue;
                };
                let (file, counts) = match target {
                    Target::Module(used) => (self.0[used].file.as_str(), found.is_glob),
                    Target::Item { file, is_trait } => {
                        let name = found.alias.as_deref().unwrap_or_default();
                        (file, !found.is_reexport || is_trait || mentions.contains(name))
                    }
                };
                if counts {
                    let end = if found.is_glob { "::*" } else { "" };
                    let text = format!("{}{end}", found.path.join("::"));
                    graph.add(&module.file, file, found.line, text);
                }
            }
            for (line, path) in &module.scope.paths {
                if let Some(file) = self.named(index, path) {
                    graph.add(&module.file, file, *line, path.join("::"));
                }
            }
        }
    }

    /// Returns the file of the item that a path in code names, unless the path begins with an item
    /// that this module has or imports.
    fn named(&self, module: usize, path: &[String]) -> Option<&str> {
        let first = path[0].as_str();
        if !matches!(first, "crate" | "self" | "super")
            && !matches!(self.resolve(module, &path[..1], true, 0)?, Target::Module(_))
        {
            return None;
        }
        match self.resolve(module, path, false, 0)? {
            Target::Item { file, .. } => Some(file),
            Target::Module(_) => None,
        }
    }

    /// Follows `path` from `module` through modules and imports to the definition. Returns `None`
    /// for a path into another crate. Where a name stands for a module and an item, `is_module`
    /// says which is meant.
    fn resolve(
        &self,
        module: usize,
        path: &[String],
        is_module: bool,
        chain: usize,
    ) -> Option<Target<'_>> {
        let mut current = module;
        for (index, segment) in path.iter().enumerate() {
            let is_prefix = is_module || index + 1 < path.len();
            match segment.as_str() {
                "crate" => current = 0,
                "self" => {}
                "super" => current = self.0[current].parent,
                name => match self.lookup(current, name, is_prefix, chain) {
                    Some(Target::Module(next)) => current = next,
                    Some(item) => return Some(item),
                    // The name of another crate, or of an item of it.
                    None if index == 0 || self.0[current].imports.contains_key(name) => {
                        return None;
                    }
                    // A macro may have made it: it counts as an item of this module.
                    None => {
                        return Some(Target::Item { file: &self.0[current].file, is_trait: false });
                    }
                },
            }
        }
        Some(Target::Module(current))
    }

    fn lookup(
        &self,
        module: usize,
        name: &str,
        is_prefix: bool,
        chain: usize,
    ) -> Option<Target<'_>> {
        let found = &self.0[module];
        let inner = found.modules.get(name).map(|inner| Target::Module(*inner));
        let item = found.items.get(name);
        let item = item.map(|is_trait| Target::Item { file: &found.file, is_trait: *is_trait });
        let import = || {
            let import = found.imports.get(name).filter(|_| chain < CHAIN_MAX)?;
            self.resolve(module, &import.path, is_prefix || import.is_module, chain + 1)
        };
        let glob = || {
            let globs = found.scope.uses.iter().filter(|found| found.is_glob && chain < CHAIN_MAX);
            globs.filter_map(|glob| self.resolve(module, &glob.path, true, chain + 1)).find_map(
                |target| match target {
                    Target::Module(used) => self.lookup(used, name, is_prefix, chain + 1),
                    Target::Item { .. } => None,
                },
            )
        };
        if is_prefix {
            inner.or_else(import).or(item).or_else(glob)
        } else {
            item.or_else(import).or(inner).or_else(glob)
        }
    }
}
