//! Names of variables that a workload reads.

use crate::wml::Workload;
use crate::wml::ast::{AttrValue, Attrs, Expr, ExprKind, Flowop, Statement, StatementKind};
use crate::wml::lexer::Piece;
use std::collections::HashSet;

/// Variables with a predefined value, which a workload need not set.
const PREDEFINED_VARIABLES: [&str; 2] = ["date", "hostname"];

/// Names of the variables that a workload reads and never sets, in the order of their first use. In Filebench 1.x,
/// profiles set such variables.
pub(crate) fn unset(workload: &Workload) -> Vec<&str> {
    let mut reads = Reads::default();
    reads.statements(&workload.statements);
    let Reads { set, read, .. } = reads;
    let is_predefined =
        |name: &str| PREDEFINED_VARIABLES.contains(&name) || name.starts_with("stats.");
    let is_unset = |name: &&str| !set.contains(name) && !is_predefined(name);
    read.into_iter().filter(is_unset).collect()
}

#[derive(Default)]
struct Reads<'w> {
    set: HashSet<&'w str>,
    read: Vec<&'w str>,
    /// The names in `read`, for lookup.
    seen: HashSet<&'w str>,
    /// Locals of the composite flowop that is being visited.
    locals: HashSet<&'w str>,
}

impl<'w> Reads<'w> {
    fn statements(&mut self, statements: &'w [Statement]) {
        for statement in statements {
            self.statement(&statement.kind);
        }
    }

    fn statement(&mut self, statement: &'w StatementKind) {
        match statement {
            StatementKind::Set { name, value } => {
                self.set.insert(&name.value);
                self.expr(value);
            }
            StatementKind::Foreach { name, values, body } => {
                self.set.insert(&name.value);
                values.iter().for_each(|v| self.expr(v));
                self.statements(body);
            }
            StatementKind::Fileset(def) => self.attrs(&def.attrs),
            StatementKind::Process(process) => {
                self.attrs(&process.attrs);
                for thread in &process.threads {
                    self.attrs(&thread.attrs);
                    self.flowops(&thread.flowops);
                }
            }
            StatementKind::Composite(composite) => {
                // Each use of the composite, or a default, sets a local, so a read of a local reads no variable.
                let locals = composite.attrs.locals.iter();
                self.locals = locals.map(|l| l.name.as_str()).collect();
                self.attrs(&composite.attrs);
                self.flowops(&composite.flowops);
                self.locals.clear();
            }
            StatementKind::EventGen(attrs) => self.attrs(attrs),
            StatementKind::PsRun { period, time } => {
                self.expr(period);
                time.iter().for_each(|t| self.expr(t));
            }
            StatementKind::Run(time) => time.iter().for_each(|t| self.expr(t)),
            StatementKind::Sleep(e)
            | StatementKind::Warmup(e)
            | StatementKind::Echo(e)
            | StatementKind::Usage(e)
            | StatementKind::System(e)
            | StatementKind::Load(e) => self.expr(e),
            StatementKind::Mode(_)
            | StatementKind::NoUsageStats
            | StatementKind::Create(_)
            | StatementKind::Stats(_)
            | StatementKind::Shutdown
            | StatementKind::Quit
            | StatementKind::Nothing(_) => {}
        }
    }

    fn flowops(&mut self, flowops: &'w [Flowop]) {
        flowops.iter().for_each(|f| self.attrs(&f.attrs));
    }

    fn attrs(&mut self, attrs: &'w Attrs) {
        for value in attrs.list.iter().filter_map(|a| a.value.as_ref()) {
            match value {
                AttrValue::Expr(expr) => self.expr(expr),
                AttrValue::Table(rows) => {
                    rows.value.iter().flatten().for_each(|e| self.expr(e));
                }
            }
        }
        let locals = attrs.locals.iter().filter_map(|l| l.value.as_ref());
        locals.for_each(|e| self.expr(e));
    }

    fn expr(&mut self, expr: &'w Expr) {
        match &expr.kind {
            ExprKind::Var(name) => self.name(name),
            ExprKind::Text(pieces) => {
                for piece in pieces {
                    if let Piece::Var(name, _) = piece {
                        self.name(name);
                    }
                }
            }
            ExprKind::Chain(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::Random(random) => self.attrs(&random.attrs),
            ExprKind::Int(_)
            | ExprKind::Mega(_)
            | ExprKind::Time(_)
            | ExprKind::Bool(_)
            | ExprKind::Word(_) => {}
        }
    }

    fn name(&mut self, name: &'w str) {
        if !self.locals.contains(name) && self.seen.insert(name) {
            self.read.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wml::parse;

    #[test]
    fn variables_of_every_statement_are_found_but_those_that_something_sets() {
        let text = "set $set=$a * 2
set $size=randvar(type=gamma, mean=$b)
define fileset name=$c, path=\"${d}/x\", entries=$set, size=$size, dirwidth=8
define flowop name=both, $local, $other=$e {
  flowop read name=r, filesetname=$local, iosize=$f, iters=$other
}
define process name=p { thread name=t, memsize=$g, instances=$set {
  flowop both name=b1, $local=$h
  flowop statfile name=s, filesetname=$c
} }
eventgen rate=$i
foreach $turn in $j,2 { echo \"$turn on $(hostname) at $(date): ${stats.iorate}, not \\$this\" }
usage \"defaults to $k\"
system \"true $l\"
run $m
psrun -10 $n
sleep $o
warmup $p
load $q
set $late=1
echo \"$late\"
";
        let workload = parse(text, "t").unwrap_or_else(|e| panic!("{e}"));
        let expected: Vec<String> = ('a'..='q').map(|c| c.to_string()).collect();
        assert_eq!(unset(&workload), expected);
    }
}
