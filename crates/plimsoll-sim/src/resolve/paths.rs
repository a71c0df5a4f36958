//! Expansion of paths into steps.

use super::{Element, Resolver};
use crate::file::{CacheWrite, PathStep, StepTable};
use crate::spanned::Spanned;
use crate::system::{Choice, MAX_CACHE_DEPTH, OperationClass, Payload, RebuildSpec, Step};
use plimsoll_diagnostics::{Problem, Span};

/// Maximum number of steps of all expanded paths of a system.
const MAX_STEPS: usize = 10_000;

/// Maximum number of path expansions, counting repetitions.
const MAX_WRITTEN_OUT: usize = 10_000;

/// Maximum nesting depth of paths.
const MAX_PATH_DEPTH: usize = 64;

/// Minimum piece size of a stripe in bytes.
const MIN_PIECE_BYTES: f64 = 512.0;

/// State of the expansion of a path into steps.
struct Context<'a> {
    class: OperationClass,
    /// Names of the nested paths that are being expanded, outermost first.
    open: Vec<&'a str>,
    caches: u8,
    /// Bit mask of the groups with a chosen node.
    chosen: u8,
    /// In a background path, bit mask of the groups whose node comes from the starter of the path; `None` elsewhere.
    inherited: Option<u8>,
}

/// A background path: its first step, and the groups for which the starter must have chosen a node.
#[derive(Clone, Copy)]
struct Background {
    step: u32,
    inherited: u8,
}

impl<'a> Resolver<'a> {
    pub(super) fn paths(&mut self) {
        let file = self.file;
        for name in file.path.keys() {
            if self.class(name.get_ref()).is_none() {
                self.name(name, Element::Path);
            }
        }
        // Background paths come first: a step that starts a background path refers to the first step of the path.
        for (buffer, path) in self.buffers_in_order() {
            self.drain(buffer, path);
        }
        for (i, node) in file
            .node
            .values()
            .enumerate()
            .take(self.system.groups.len())
        {
            let Some(rebuild) = &node.rebuild else {
                continue;
            };
            let in_flight = self.positive(&rebuild.in_flight, "pieces in flight");
            let chunk = (rebuild.chunk.get_ref().0 as u64).max(1);
            let background = self.background(&rebuild.path);
            if background.inherited & !(1 << i) != 0 {
                self.problem(
                    &rebuild.path,
                    "a path that rebuilds knows its own node only",
                    "this path needs another",
                );
            }
            self.system.groups[i].rebuild = Some(RebuildSpec {
                step: background.step,
                chunk,
                in_flight,
            });
        }
        for class in OperationClass::ALL {
            self.entry(class);
        }
        self.unused();
    }

    fn class(&self, name: &str) -> Option<OperationClass> {
        OperationClass::ALL.into_iter().find(|c| c.name() == name)
    }

    pub(super) fn element(&self, name: &str) -> Option<Element> {
        self.names.get(name).map(|(element, _)| *element)
    }

    fn drain(&mut self, buffer: u16, path: &'a Spanned<String>) {
        let Background { step, inherited } = self.background(path);
        self.system.buffers[buffer as usize].drain = step;
        self.inherited.insert(buffer, inherited);
    }

    /// Expands a path that background flows take: the path of a drain, a flush or a rebuild.
    fn background(&mut self, path: &'a Spanned<String>) -> Background {
        let step = self.system.steps.len() as u32;
        let mut context = Context {
            class: OperationClass::DataWrite,
            open: vec![],
            caches: 0,
            chosen: 0,
            inherited: Some(0),
        };
        self.path(path.get_ref(), self.span(path), &mut context);
        self.system.steps.push(Step::End);
        Background {
            step,
            inherited: context.inherited.expect("it was given above"),
        }
    }

    /// Expands the path of a class. A missing path of opens or commits is replaced by the path of metadata reads or
    /// changes.
    fn entry(&mut self, class: OperationClass) {
        let nearest = match class {
            OperationClass::Open => OperationClass::MetadataRead,
            OperationClass::Commit => OperationClass::MetadataChange,
            other => other,
        };
        let names = [class, nearest].map(OperationClass::name);
        let Some(name) = names
            .into_iter()
            .find(|n| self.file.path.keys().any(|k| k.get_ref() == n))
        else {
            let message = format!(
                "the path of `{}` is missing: give [path] a key `{}`",
                class.name(),
                class.name()
            );
            self.problems.push(Problem::of_text(0, message));
            return;
        };
        self.system.entries[class as usize] = self.system.steps.len() as u32;
        let mut context = Context {
            class,
            open: vec![],
            caches: 0,
            chosen: 0,
            inherited: None,
        };
        self.path(name, Span::default(), &mut context);
        self.system.steps.push(Step::End);
    }

    /// Expands the path `name`, used at `span`.
    fn path(&mut self, name: &str, span: Span, context: &mut Context<'a>) {
        let found = self.file.path.iter().find(|(key, _)| key.get_ref() == name);
        let Some((key, steps)) = found else {
            let known = self.file.path.keys().map(|k| k.get_ref().as_str());
            let problem = Problem::new(
                span,
                format!("`{name}` is not a path"),
                "not a key of [path]",
            );
            self.problems.push(problem.suggest(name, known));
            return;
        };
        let key = key.get_ref().as_str();
        if context.open.contains(&key) {
            let way = context.open.join("` → `");
            let message = format!("the path `{key}` leads to itself: `{way}` → `{key}`");
            self.problems
                .push(Problem::new(span, message, "here the loop closes"));
            return;
        }
        self.written_out += 1;
        if self.is_too_long() {
            return;
        }
        if context.open.len() == MAX_PATH_DEPTH {
            let message = format!("at most {MAX_PATH_DEPTH} paths lie within each other");
            self.problems
                .push(Problem::new(span, message, "one too many"));
            return;
        }
        self.used.insert(key);
        context.open.push(key);
        for step in steps {
            self.step(step, context);
        }
        context.open.pop();
        if self.is_too_long() {
            // Repetitions of this message are removed by `distinct`.
            let message = format!("the paths have more than {MAX_STEPS} steps, written out");
            self.problems.push(Problem::of_text(0, message));
        }
    }

    fn is_too_long(&self) -> bool {
        self.system.steps.len() > MAX_STEPS || self.written_out > MAX_WRITTEN_OUT
    }

    fn step(&mut self, at: &'a Spanned<PathStep>, context: &mut Context<'a>) {
        let span = self.span(at);
        let name = match at.get_ref() {
            PathStep::Table(table) => {
                self.table_step(table, span, context);
                return;
            }
            PathStep::Name(name) => name.as_str(),
        };
        if let Some((link, direction)) = name.split_once('.') {
            self.link_step(link, direction, span, context);
            return;
        }
        match self.names.get(name).copied() {
            Some((element, _)) => {
                self.use_name(name);
                self.element_step(name, element, span, context);
            }
            // A class may reuse the path of another class.
            None if self.class(name).is_some() => self.path(name, span, context),
            None => {
                let known: Vec<_> = self.names.keys().copied().collect();
                let problem = Problem::new(
                    span,
                    format!("`{name}` is not an element or path"),
                    "not one of their names",
                );
                self.problems.push(problem.suggest(name, known));
            }
        }
    }

    /// Expands a step that is a table.
    fn table_step(&mut self, table: &'a StepTable, span: Span, context: &mut Context<'a>) {
        let kinds = [
            table.node.is_some(),
            table.replicate.is_some(),
            table.stripe.is_some(),
            table.limit.is_some(),
            table.tokens.is_some(),
        ];
        let wrong = match kinds.into_iter().filter(|is_given| *is_given).count() {
            1 if table.choose.is_some() != table.node.is_some() => {
                "`node` and `choose` belong together"
            }
            1 if table.wait.is_some() != table.replicate.is_some() => {
                "`replicate` and `wait` belong together"
            }
            1 if table.path.is_some() == table.node.is_some() => {
                "`replicate`, `stripe`, `limit` and `tokens` have a `path`, `node` has none"
            }
            1 => return self.valid_table_step(table, span, context),
            _ => "a step has one of `node`, `replicate`, `stripe`, `limit` and `tokens`",
        };
        self.problems.push(Problem::new(span, wrong, "this step"));
    }

    fn valid_table_step(&mut self, table: &'a StepTable, span: Span, context: &mut Context<'a>) {
        if let (Some(node), Some(choose)) = (&table.node, &table.choose) {
            let Some(group) = self.group(Some(node)) else {
                return;
            };
            let choose = *choose.get_ref();
            if choose == Choice::LeastBusy
                && !self
                    .system
                    .stations
                    .iter()
                    .any(|s| s.placement.group == Some(group))
            {
                self.problem(
                    node,
                    "no station belongs to a node of this group, so that none is busy",
                    "choose in another way",
                );
            }
            context.chosen |= 1 << group;
            self.system.steps.push(Step::Choose { group, choose });
            return;
        }
        let Some(path) = &table.path else {
            unreachable!("every step but `node` has a path")
        };
        if let (Some(node), Some(wait)) = (&table.replicate, &table.wait) {
            let Some(group) = self.group(Some(node)) else {
                return;
            };
            let before = context.chosen;
            context.chosen |= 1 << group;
            let at = self.body(path, context, true);
            context.chosen = before;
            let after = self.system.steps.len() as u32;
            self.system.steps[at] = Step::Replicate {
                group,
                wait: *wait.get_ref(),
                after,
            };
        } else if let Some(unit) = &table.stripe {
            let at = self.body(path, context, true);
            if unit.get_ref().0 < MIN_PIECE_BYTES {
                let message = format!("a piece must have at least {MIN_PIECE_BYTES} bytes");
                self.problem(unit, message, "this size");
            }
            let after = self.system.steps.len() as u32;
            let unit = unit.get_ref().0.max(MIN_PIECE_BYTES) as u64;
            self.system.steps[at] = Step::Stripe { unit, after };
        } else if let Some(name) = &table.limit {
            let Some(Element::Limit(limit)) =
                self.named(name, "limit", |e| matches!(e, Element::Limit(_)))
            else {
                return;
            };
            self.check_group(
                self.system.limits[limit as usize].placement.group,
                name.get_ref(),
                span,
                context,
            );
            self.system.steps.push(Step::Acquire { limit });
            self.path(path.get_ref(), self.span(path), context);
            self.system.steps.push(Step::Release);
        } else if let Some(name) = &table.tokens {
            let Some(Element::Tokens(table)) =
                self.named(name, "tokens", |e| matches!(e, Element::Tokens(_)))
            else {
                return;
            };
            let at = self.body(path, context, false);
            let after = self.system.steps.len() as u32;
            self.system.steps[at] = Step::Token { table, after };
        }
    }

    /// Resolves the element of a name, if it is of the required kind.
    fn named(
        &mut self,
        name: &'a Spanned<String>,
        table: &str,
        is_kind: impl Fn(&Element) -> bool,
    ) -> Option<Element> {
        let found = self.element(name.get_ref()).filter(&is_kind);
        if found.is_none() {
            let known: Vec<_> = self
                .names
                .iter()
                .filter(|(_, (e, _))| is_kind(e))
                .map(|(n, _)| *n)
                .collect();
            let message = format!("`{}` is not a table [{table}.…]", name.get_ref());
            let problem = Problem::new(self.span(name), message, "not the name of such a table");
            self.problems.push(problem.suggest(name.get_ref(), known));
        }
        self.use_name(name.get_ref());
        found
    }

    fn use_name(&mut self, name: &str) {
        if let Some((&known, _)) = self.names.get_key_value(name) {
            self.used.insert(known);
        }
    }

    fn link_step(&mut self, link: &str, direction: &str, span: Span, context: &mut Context<'a>) {
        let Some(&[request, reply]) = self.links.get(link) else {
            let known: Vec<_> = self.links.keys().copied().collect();
            let problem = Problem::new(
                span,
                format!("`{link}` is not a link"),
                "not a table [link.…]",
            );
            self.problems.push(problem.suggest(link, known));
            return;
        };
        self.use_name(link);
        let (element, carries) = match direction {
            "request" => (request, context.class == OperationClass::DataWrite),
            "reply" => (reply, context.class == OperationClass::DataRead),
            _ => {
                let message =
                    format!("a link has the directions `{link}.request` and `{link}.reply`");
                self.problems
                    .push(Problem::new(span, message, "not one of these"));
                return;
            }
        };
        let Element::Link {
            transmission,
            latency,
            header,
        } = element
        else {
            unreachable!("directions of links are links");
        };
        for station in transmission.into_iter().chain(latency) {
            self.check_group(
                self.system.stations[station as usize].placement.group,
                link,
                span,
                context,
            );
            let payload = Payload::Request {
                header,
                data: carries,
            };
            self.system.steps.push(Step::Visit { station, payload });
        }
    }

    /// Checks that the path has chosen a node of the element's group before the element.
    fn check_group(
        &mut self,
        group: Option<u8>,
        name: &str,
        span: Span,
        context: &mut Context<'a>,
    ) {
        let Some(group) = group.filter(|g| context.chosen & 1 << g == 0) else {
            return;
        };
        if let Some(inherited) = &mut context.inherited {
            *inherited |= 1 << group;
            return;
        }
        let node = &self.system.groups[group as usize].name;
        let message = format!("`{name}` belongs to the nodes of `{node}`, and none is chosen yet");
        let problem = Problem::new(
            span,
            message,
            format!("put a step {{ node = \"{node}\", choose = … }} before it"),
        );
        self.problems.push(problem);
    }

    fn element_step(
        &mut self,
        name: &str,
        element: Element,
        span: Span,
        context: &mut Context<'a>,
    ) {
        match element {
            Element::Station(station) => {
                self.check_group(
                    self.system.stations[station as usize].placement.group,
                    name,
                    span,
                    context,
                );
                self.system.steps.push(Step::Visit {
                    station,
                    payload: Payload::Data,
                });
            }
            Element::Link { .. } => {
                let message =
                    format!("a link is passed in a direction: `{name}.request` or `{name}.reply`");
                self.problems
                    .push(Problem::new(span, message, "which one?"));
            }
            Element::Cache(cache) => self.cache_step(name, cache, span, context),
            Element::Log(buffer) => self.append(name, buffer, span, context),
            Element::Limit(_) => {
                let message =
                    format!("a limit holds back a path: {{ limit = \"{name}\", path = … }}");
                self.problems
                    .push(Problem::new(span, message, "which path?"));
            }
            Element::Tokens(_) => {
                let message = format!(
                    "tokens need the path of a recall: {{ tokens = \"{name}\", path = … }}"
                );
                self.problems
                    .push(Problem::new(span, message, "which path?"));
            }
            Element::Path => self.path(name, span, context),
        }
    }

    /// Expands a path after a placeholder step, which the caller fills in; if `ends`, adds [`Step::End`] after the
    /// path. Returns the placeholder's number.
    fn body(&mut self, path: &'a Spanned<String>, context: &mut Context<'a>, ends: bool) -> usize {
        let at = self.system.steps.len();
        self.system.steps.push(Step::End);
        let chosen = context.chosen;
        self.path(path.get_ref(), self.span(path), context);
        context.chosen = chosen;
        if ends {
            self.system.steps.push(Step::End);
        }
        at
    }

    fn cache_step(&mut self, name: &str, cache: u16, span: Span, context: &mut Context<'a>) {
        use OperationClass::{Commit, DataRead, DataWrite, MetadataChange, MetadataRead, Open};
        let file = self.file;
        let written = &file.cache[name];
        self.check_group(
            self.system.caches[cache as usize].placement.group,
            name,
            span,
            context,
        );
        match (context.class, written.write) {
            (DataRead | MetadataRead | Open, _) => {
                if context.caches as usize == MAX_CACHE_DEPTH {
                    let message = format!("at most {MAX_CACHE_DEPTH} caches lie behind each other");
                    self.problems
                        .push(Problem::new(span, message, "one too many"));
                    return;
                }
                let depth = context.caches;
                context.caches += 1;
                let at = self.body(&written.miss, context, false);
                context.caches -= 1;
                self.system.steps.push(Step::Restore { depth });
                let after = self.system.steps.len() as u32;
                self.system.steps[at] = Step::Lookup {
                    cache,
                    depth,
                    after,
                };
            }
            (DataWrite | MetadataChange, CacheWrite::Through) => {
                self.system.steps.push(Step::Store { cache })
            }
            (DataWrite | MetadataChange, CacheWrite::Back) => {
                self.system.steps.push(Step::Store { cache });
                if let Some(&buffer) = self.cache_buffers.get(&cache) {
                    self.append(name, buffer, span, context);
                }
            }
            (DataWrite | MetadataChange, CacheWrite::Around) | (Commit, _) => {}
        }
    }

    fn append(&mut self, name: &str, buffer: u16, span: Span, context: &mut Context<'a>) {
        self.check_group(
            self.system.buffers[buffer as usize].placement.group,
            name,
            span,
            context,
        );
        let inherited = self.inherited.get(&buffer).copied().unwrap_or(0);
        for group in 0..self.system.groups.len() as u8 {
            if inherited & 1 << group != 0 {
                self.check_group(Some(group), name, span, context);
            }
        }
        self.system.steps.push(Step::Append { buffer });
    }

    /// Reports elements and paths that no path uses.
    fn unused(&mut self) {
        if !self.problems.is_empty() {
            return;
        }
        for (name, (_, span)) in &self.names {
            if !self.used.contains(name) {
                let message = format!("no path uses `{name}`");
                self.problems.push(Problem::new(
                    *span,
                    message,
                    "leave it out, or name it in a path",
                ));
            }
        }
        for (name, group) in &self.groups {
            let is_chosen = |step: &Step| matches!(step, Step::Choose { group: g, .. } | Step::Replicate { group: g, .. } if g == group);
            if !self.system.steps.iter().any(is_chosen) {
                let message = format!("no path goes to a node of `{name}`");
                self.problems.push(Problem::of_text(0, message));
            }
        }
        self.problems.sort_by_key(|p| p.span.start);
    }
}
