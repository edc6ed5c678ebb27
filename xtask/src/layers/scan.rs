//! Finds the modules, items, imports and paths of one source file by its tokens.

use crate::source::is_identifier;
use crate::tokens::{Token, tokens};
use std::collections::BTreeSet;

/// A file, or a module in braces inside it.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The name of a module in braces; empty for the file.
    pub(super) name: String,
    pub(super) items: Vec<Item>,
    /// Modules that have a file of their own.
    pub(super) declared: Vec<String>,
    pub(super) inline: Vec<Scope>,
    pub(super) uses: Vec<Use>,
    /// Paths of two segments or more outside `use`, with their lines.
    pub(super) paths: Vec<(usize, Vec<String>)>,
    /// Identifiers that may name an item, outside `use`.
    pub(super) mentions: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) is_trait: bool,
}

/// One name that a `use` brings in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) line: usize,
    pub(super) path: Vec<String>,
    /// The name in this module; `None` for `as _` and `*`.
    pub(super) alias: Option<String>,
    pub(super) is_reexport: bool,
    pub(super) is_glob: bool,
    /// True when only a module can be meant: `use a::b::{self}`.
    pub(super) is_module: bool,
}

/// Returns what is in a file, without test code.
pub(super) fn scan(text: &str) -> Scope {
    let tokens = without_tests(&tokens(text));
    let mut scanner = Scanner { tokens: &tokens, at: 0, depth: 0, open: vec![] };
    scanner.open.push((0, Scope::default()));
    while scanner.at < tokens.len() {
        scanner.step();
    }
    while scanner.open.len() > 1 {
        scanner.close();
    }
    scanner.open.pop().expect("the file is never closed").1
}

struct Scanner<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// Open braces, brackets and parentheses.
    depth: usize,
    /// The file and the modules in braces around the token, each with the depth of its items.
    open: Vec<(usize, Scope)>,
}

impl<'a> Scanner<'a> {
    fn token(&self, offset: usize) -> &'a str {
        text(self.tokens, self.at + offset)
    }

    fn scope(&mut self) -> &mut Scope {
        &mut self.open.last_mut().expect("the file is never closed").1
    }

    fn step(&mut self) {
        let (line, token) = self.tokens[self.at];
        let previous = self.at.checked_sub(1).map_or("", |at| self.tokens[at].1);
        match token {
            "{" | "(" | "[" => self.depth += 1,
            "}" | ")" | "]" => {
                self.depth = self.depth.saturating_sub(1);
                if self.open.len() > 1 && self.open.last().is_some_and(|open| open.0 > self.depth) {
                    self.close();
                }
            }
            "mod" if is_word(self.token(1)) => return self.module(),
            "use" if self.token(1) != "<" => {
                return self.import(matches!(previous, "pub" | ")"));
            }
            "macro_rules" if self.token(1) == "!" => return self.item(2),
            "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                if is_word(self.token(1)) && self.token(1) != "fn" =>
            {
                return self.item(if self.token(1) == "mut" { 2 } else { 1 });
            }
            _ if is_word(token) && previous != "::" && previous != "." => {
                return self.path(line);
            }
            _ => {}
        }
        self.at += 1;
    }

    fn close(&mut self) {
        let (_, scope) = self.open.pop().expect("a module in braces is open");
        self.scope().inline.push(scope);
    }

    fn module(&mut self) {
        let name = self.token(1).to_owned();
        if self.token(2) == "{" {
            self.depth += 1;
            self.open.push((self.depth, Scope { name, ..Scope::default() }));
        } else {
            self.scope().declared.push(name);
        }
        self.at += 3;
    }

    /// Adds the item whose name is `offset` tokens ahead, if it is an item of the module and not of
    /// a function, trait or `impl`.
    fn item(&mut self, offset: usize) {
        let name = self.token(offset).to_owned();
        let is_trait = self.token(0) == "trait";
        if self.open.last().is_some_and(|open| open.0 == self.depth) {
            self.scope().items.push(Item { name, is_trait });
        }
        self.at += offset + 1;
    }

    fn path(&mut self, line: usize) {
        let mut path = vec![self.token(0).to_owned()];
        self.at += 1;
        while self.token(0) == "::" && is_word(self.token(1)) {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        let is_field = path.len() == 1 && self.token(0) == ":";
        let scope = self.scope();
        if !is_field {
            scope.mentions.insert(path[0].clone());
        }
        if path.len() > 1 {
            scope.paths.push((line, path));
        }
    }

    fn import(&mut self, is_reexport: bool) {
        let start = self.at + 1;
        let mut uses = Vec::new();
        self.at = use_tree(self.tokens, start, &[], &mut uses);
        let uses = uses.into_iter().map(|found| Use { is_reexport, ..found });
        self.scope().uses.extend(uses);
    }
}

/// Adds the names of the tree at `at`, whose path begins with `prefix`; returns the index after it.
fn use_tree(tokens: &[Token<'_>], mut at: usize, prefix: &[String], uses: &mut Vec<Use>) -> usize {
    let mut path = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.0);
    loop {
        match text(tokens, at) {
            "::" => at += 1,
            "{" => {
                at += 1;
                while !matches!(text(tokens, at), "}" | "") {
                    at = use_tree(tokens, at, &path, uses);
                    at += usize::from(text(tokens, at) == ",");
                }
                return at + 1;
            }
            "*" => {
                uses.push(Use { line, path, is_glob: true, ..Use::default() });
                return at + 1;
            }
            word if is_word(word) && word != "as" => {
                path.push(word.to_owned());
                at += 1;
                if text(tokens, at) != "::" {
                    break;
                }
            }
            _ => return at + 1,
        }
    }
    let is_module = path.len() > 1 && path.last().is_some_and(|last| last == "self");
    if is_module {
        path.pop();
    }
    let mut alias = path.last().cloned();
    if text(tokens, at) == "as" {
        alias = Some(text(tokens, at + 1).to_owned()).filter(|name| name != "_");
        at += 2;
    }
    uses.push(Use { line, path, alias, is_module, ..Use::default() });
    at
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.1)
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c| is_identifier(c) && !char::is_numeric(c))
}

/// Leaves out what `#[cfg(test)]`, `#[cfg(all(test, ..))]` or `#[test]` stands before.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_test(tokens, at) {
            at = item_end(tokens, at);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

fn is_test(tokens: &[Token<'_>], at: usize) -> bool {
    const TESTS: [&[&str]; 3] = [
        &["#", "[", "cfg", "(", "test", ")", "]"],
        &["#", "[", "cfg", "(", "all", "(", "test"],
        &["#", "[", "test", "]"],
    ];
    let begins =
        |words: &&[&str]| words.iter().zip(at..).all(|(word, at)| text(tokens, at) == *word);
    TESTS.iter().any(begins)
}

/// Returns the index after the item, statement, field or match arm whose attributes begin at `at`.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    while text(tokens, at) == "#" {
        at = group_end(tokens, at + 1);
    }
    let mut first = at;
    while matches!(text(tokens, first), "pub" | "(" | "async" | "extern" | "\"\"") {
        first = if text(tokens, first) == "(" { group_end(tokens, first) } else { first + 1 };
    }
    let is_constant = text(tokens, first) == "const" && text(tokens, first + 1) != "fn";
    let has_body =
        !is_constant && !matches!(text(tokens, first), "use" | "static" | "type" | "let");
    let is_item = matches!(
        text(tokens, first),
        "fn" | "const" | "struct" | "enum" | "union" | "trait" | "impl" | "mod" | "macro_rules"
    );
    while at < tokens.len() {
        match text(tokens, at) {
            ";" => return at + 1,
            "," if has_body && !is_item => return at + 1,
            "}" | ")" | "]" => return at,
            "{" if has_body => return group_end(tokens, at),
            "{" | "(" | "[" => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Returns the index after the group that opens at `at`.
fn group_end(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, (_, token)) in tokens.iter().enumerate().skip(at) {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scope: &Scope) -> Vec<&str> {
        scope.items.iter().map(|item| item.name.as_str()).collect()
    }

    fn paths(scope: &Scope) -> Vec<String> {
        scope.paths.iter().map(|(line, path)| format!("{line}: {}", path.join("::"))).collect()
    }

    fn uses(text: &str) -> Vec<String> {
        let path = |found: Use| {
            let end = if found.is_glob { "::*" } else { "" };
            let alias = found.alias.unwrap_or_default();
            format!("{}: {}{end} {alias}", found.line, found.path.join("::"))
        };
        scan(text).uses.into_iter().map(path).collect()
    }

    #[test]
    fn items_of_a_module_are_told_from_those_inside_them() {
        let scope = scan(
            "pub(crate) const fn a() { const B: u8 = 1; fn c() {} }
             impl D { fn e() {} type F = u8; }
             static mut G: [u8; 2] = [0; 2];
             trait H { fn i(); }
             macro_rules! j { () => {} }
             mod k { struct L; mod m {} }
             mod n;",
        );
        assert_eq!(names(&scope), ["a", "G", "H", "j"]);
        assert!(scope.items[2].is_trait && !scope.items[1].is_trait);
        assert_eq!((names(&scope.inline[0]), scope.declared), (vec!["L"], vec!["n".to_owned()]));
        assert_eq!(scope.inline[0].inline[0].name, "m");
    }

    #[test]
    fn imports_are_found_in_braces_and_over_lines() {
        let text =
            "pub use crate::a::{self, b,\n  c::{D as E, f::*}, G as _};\nfn h() { use i::j; }";
        let expected = ["1: crate::a a", "1: crate::a::b b", "2: crate::a::c::D E"];
        assert_eq!(uses(text)[..3], expected);
        assert_eq!(uses(text)[3..], ["2: crate::a::c::f::* ", "2: crate::a::G ", "3: i::j j"]);
        let scope = scan(text);
        assert!(scope.uses[0].is_module && !scope.uses[1].is_module);
        assert!(scope.uses[0].is_reexport && !scope.uses[5].is_reexport);
        assert!(scan("pub(in crate::a) use b::c;").uses[0].is_reexport);
    }

    #[test]
    fn paths_are_found_in_code_macros_and_attributes_only() {
        let text = "#[arg(value = crate::a::b)] // crate::c::d
            fn e(f: &'static super::F) -> impl G + use<'_> {
                h!(i::j, \"crate::k::l\"); m.n::<u8>(); <O>::p()
            }";
        assert_eq!(paths(&scan(text)), ["1: crate::a::b", "2: super::F", "3: i::j"]);
    }

    #[test]
    fn test_code_is_left_out() {
        let text = "#[cfg(test)] mod tests { fn a() { b::c(); } }
            #[cfg(test)] mod more;
            #[cfg(test)] #[allow(x)] pub(crate) use b::D;
            #[cfg(test)] const E: F<b::G> = F { h: b::i() };
            #[cfg(all(test, unix))] pub(crate) fn j(k: b::L) -> [u8; 2] { b::m() }
            struct N { #[cfg(test)] o: b::P, q: r::S }
            #[test] fn t() { b::u() }
            #[cfg(test)] impl V for b::W { fn x() {} }
            fn y() { z::a(); }";
        let scope = scan(text);
        assert_eq!(paths(&scope), ["6: r::S", "9: z::a"]);
        assert_eq!(names(&scope), ["N", "y"]);
        assert!(scope.inline.is_empty() && scope.declared.is_empty() && scope.uses.is_empty());
    }

    #[test]
    fn names_in_imports_of_methods_and_of_fields_are_no_mentions() {
        let scope = scan("pub use a::B; pub use a::c; fn d() { e.c(); f(G::h(J { k: 1 })); }");
        for absent in ["B", "c", "h", "k"] {
            assert!(!scope.mentions.contains(absent), "{absent}");
        }
        assert!(scope.mentions.contains("f") && scope.mentions.contains("G"));
    }
}
