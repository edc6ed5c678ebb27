use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// An instruction that costs many cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Costly {
    /// It has a LOCK prefix, or is an exchange with memory, which has one always.
    Locked,
    /// An integer division.
    Division,
}

/// The costly instructions of a program, by their addresses in its file.
#[derive(Debug, Default)]
pub(crate) struct Code(BTreeMap<u64, Costly>);

impl Code {
    /// Disassembles `program` with objdump.
    pub(crate) fn of(program: &Path) -> Result<Self, String> {
        let failed = |error| format!("objdump (Debian package binutils) does not run: {error}");
        let mut objdump = Command::new("objdump")
            .args(["--disassemble", "--no-show-raw-insn", "--section=.text"])
            .arg(program)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = BufReader::new(objdump.stdout.take().expect("it has a pipe"));
        let lines: Vec<String> = output.lines().collect::<Result<_, _>>().map_err(failed)?;
        let code: Self = lines.iter().filter_map(|line| costly(line)).collect();
        let status = objdump.wait().map_err(failed)?;
        if !status.success() || code.0.is_empty() {
            return Err(format!("objdump finds no code in {}: {status}", program.display()));
        }
        Ok(code)
    }

    /// Returns the kind of the instruction at `address`, if it is costly.
    pub(crate) fn get(&self, address: u64) -> Option<Costly> {
        self.0.get(&address).copied()
    }
}

impl FromIterator<(u64, Costly)> for Code {
    fn from_iter<I: IntoIterator<Item = (u64, Costly)>>(instructions: I) -> Self {
        Self(instructions.into_iter().collect())
    }
}

/// Reads a line of objdump, as in `    5d0:\tlock xadd %rax,(%rdi)`.
fn costly(line: &str) -> Option<(u64, Costly)> {
    let (address, instruction) = line.split_once(":\t")?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    let mut words = instruction.split_whitespace();
    let kind = match words.next()? {
        "lock" => Costly::Locked,
        "xchg" if words.next()?.contains('(') => Costly::Locked,
        "div" | "divl" | "divq" | "idiv" | "idivl" | "idivq" => Costly::Division,
        _ => return None,
    };
    Some((address, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costly_instructions_are_found_by_their_names_and_operands() {
        for (line, found) in [
            ("    5d0:\tlock xadd %rax,(%rdi)", Some((0x5d0, Costly::Locked))),
            ("    5d5:\txchg   %eax,0x10(%rbx)", Some((0x5d5, Costly::Locked))),
            ("    5d8:\txchg   %ax,%ax", None),
            ("    12ab:\tdiv    %rcx", Some((0x12ab, Costly::Division))),
            ("    12ae:\tidivq  0x8(%rsp)", Some((0x12ae, Costly::Division))),
            ("    12b2:\tdivsd  %xmm1,%xmm0", None),
            ("    12b6:\tmov    %rax,%rbx", None),
            ("00000000000012a0 <divide>:", None),
        ] {
            assert_eq!(costly(line), found, "{line}");
        }
    }
}
