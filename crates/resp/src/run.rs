use crate::command::{Outcome, key_of};
use crate::door::Door;
use crate::execute::since;
use crate::failure::Failure;
use crate::hidden;
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::{Transaction, create};
use crate::values;
use base::{Buf, Key, Nanos};
use clock::LocalFuture;
use engine::{Accepted, Announced, Error, KeySpaceId, Store, Write};
use std::rc::Rc;
use std::sync::Arc;

/// Commands of a run at most.
const RUN_MAX: usize = 16;

/// One of a run. Those on one key are all of one kind.
#[derive(Debug)]
struct Step {
    key: Key,
    /// What it stores; nothing, if it reads. Of stores of one key on each other's heels only the
    /// last is done, for nobody can have seen the others. Whoever begins takes what was announced.
    store: Option<(Buf, Option<Announced>)>,
    /// Requests that it is.
    times: u32,
}

/// Plain GETs and SETs of one connection that follow each other and do not depend on each other.
/// They are done side by side.
#[derive(Debug, Default)]
pub(crate) struct Run {
    steps: Vec<Step>,
    /// Which step each request is.
    order: Vec<usize>,
}

impl Run {
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes `request`, if it is one that can be done with those before it.
    pub(crate) fn take(&mut self, door: &Door, session: &Session, request: Request<'_>) -> bool {
        if session.queue.is_some()
            || !session.may_do_all()
            || self.order.len() == RUN_MAX
            || request.is_too_long()
        {
            return false;
        }
        let is = |name: &[u8]| request.arg(0).eq_ignore_ascii_case(name);
        let is_store = match request.len() {
            2 if is(b"get") => false,
            3 if is(b"set") => true,
            _ => return false,
        };
        let Ok(key) = key_of(request.arg(1)) else { return false };
        if is_store && door.key_queues().has(session.space(), &key) {
            // It would overtake the commands that are queued.
            return false;
        }
        let store = || is_store.then(|| (request.value(2), Some(door.store().announce())));
        match self.steps.iter().position(|step| step.key == key) {
            Some(at) if self.steps[at].store.is_some() != is_store => return false,
            Some(at) => {
                self.steps[at].store = store();
                self.steps[at].times += 1;
                self.order.push(at);
            }
            None => {
                door.store().expect(session.space(), &key);
                self.order.push(self.steps.len());
                if self.steps.len() == 1 {
                    self.steps.reserve(RUN_MAX);
                }
                self.steps.push(Step { key, store: store(), times: 1 });
            }
        }
        true
    }

    /// Does them all, and returns their answers in order.
    pub(crate) async fn finish(&mut self, door: &Rc<Door>, session: &Session) -> Vec<Reply> {
        let steps = std::mem::take(&mut self.steps);
        let order = std::mem::take(&mut self.order);
        door.counters().count_commands(order.len());
        session.wire.count_commands(order.len());
        let numbers = door.watcher().plain;
        if let Some(last) = order.last() {
            session.show(door, numbers[usize::from(steps[*last].store.is_some())]);
        }
        if steps.iter().any(|step| step.store.is_some()) {
            // What other clients have sent is announced meanwhile, and goes out with these.
            clock::give_way().await;
            let stores = steps.iter().filter(|step| step.store.is_some());
            stores.for_each(|step| door.store().expect_write(session.space(), &step.key));
        }
        let mut begun = Begun::new(door, session, steps.len());
        for step in steps {
            begun.begin(step);
        }
        let done = begun.finish().await;
        if done.len() == order.len() {
            return done;
        }
        order.into_iter().map(|at| done[at].clone()).collect()
    }
}

/// Whose run it is.
#[derive(Clone)]
struct Caller {
    door: Rc<Door>,
    space: KeySpaceId,
    client: u64,
}

/// Steps of a run, of which is done what can be while nobody is waited for, one after the other.
struct Begun {
    caller: Caller,
    /// When the next one begins.
    now: Nanos,
    replies: Vec<Option<Reply>>,
    stored: Vec<AtHand>,
    /// Those that may have to wait, and have not begun.
    left: Vec<(usize, Step)>,
}

/// A store for which nobody had to wait until it was in the log.
struct AtHand {
    index: usize,
    step: Step,
    began: Nanos,
    accepted: Accepted,
}

/// Answers to steps, by their places in the run.
type Replies = Vec<(usize, Reply)>;

impl Begun {
    fn new(door: &Rc<Door>, session: &Session, steps: usize) -> Self {
        let caller = Caller { door: door.clone(), space: session.space(), client: session.id };
        let replies = Vec::with_capacity(steps);
        Self { caller, now: clock::host_now(), replies, stored: Vec::new(), left: Vec::new() }
    }

    fn begin(&mut self, mut step: Step) {
        let store = self.caller.door.store();
        let index = self.replies.len();
        match &mut step.store {
            None => {
                if let Some(value) = store.get_at_hand(self.caller.space, &step.key) {
                    return self.done(&step, Reply::Bulk(value));
                }
            }
            Some((value, announced)) if !self.caller.has_collections() => {
                let is_announced = announced.take().expect("it is done once");
                match store.put_at_hand(self.caller.space, &step.key, value, is_announced) {
                    Ok(_) if store.answers_from_memory() && !self.caller.has_collections() => {
                        return self.done(&step, Reply::OK);
                    }
                    Ok(accepted) => {
                        let began = self.lap();
                        self.replies.push(None);
                        return self.stored.push(AtHand { index, step, began, accepted });
                    }
                    Err(is_announced) => *announced = Some(is_announced),
                }
            }
            Some(_) => {}
        }
        self.lap();
        self.replies.push(None);
        self.left.push((index, step));
    }

    fn done(&mut self, step: &Step, reply: Reply) {
        let began = self.lap();
        self.caller.tell(step, Nanos(self.now.0.saturating_sub(began.0)), &reply);
        self.replies.push(Some(reply));
    }

    /// When the step began that ends here: the next one's time is its own.
    fn lap(&mut self) -> Nanos {
        std::mem::replace(&mut self.now, clock::host_now())
    }

    /// Waits for the others, and returns all answers.
    async fn finish(self) -> Vec<Reply> {
        let Self { caller, mut replies, stored, left, .. } = self;
        for (index, reply) in caller.rest(stored, left).await {
            replies[index] = Some(reply);
        }
        replies.into_iter().map(|reply| reply.expect("each is done")).collect()
    }
}

impl Caller {
    fn has_collections(&self) -> bool {
        self.door.store().has_key_space(hidden::roots(self.space))
    }

    /// What is stored and what is left is waited for side by side: what keeps place for a store
    /// until it has landed is what one that is left may wait for.
    async fn rest(self, stored: Vec<AtHand>, mut left: Vec<(usize, Step)>) -> Replies {
        match (stored.is_empty(), left.len()) {
            (true, 0) => Vec::new(),
            (false, 0) => self.landed(stored).await,
            (true, 1) => {
                let (index, step) = left.pop().expect("it is there");
                vec![(index, self.one(step).await)]
            }
            _ => {
                let mut tasks: Vec<LocalFuture<'static, Replies>> = Vec::new();
                if !stored.is_empty() {
                    tasks.push(Box::pin(self.clone().landed(stored)));
                }
                tasks.extend(left.into_iter().map(|(index, step)| {
                    let caller = self.clone();
                    let one = async move { vec![(index, caller.one(step).await)] };
                    Box::pin(one) as LocalFuture<'static, Replies>
                }));
                clock::join_at_once(tasks.into_iter()).await.into_iter().flatten().collect()
            }
        }
    }

    /// The answers to stores, once they are durable. The last one is waited for first: one that is
    /// taken back waits for those that were stored after it.
    async fn landed(self, stored: Vec<AtHand>) -> Replies {
        let mut landed = Vec::with_capacity(stored.len());
        for AtHand { index, step, began, accepted } in stored.into_iter().rev() {
            let result = self.door.store().put_landed(accepted).await;
            landed.push((index, step, began, result));
        }
        let mut replies = Vec::with_capacity(landed.len());
        for (index, step, began, result) in landed.into_iter().rev() {
            let done = match result {
                Ok(_) if !self.has_collections() => Ok(Reply::OK),
                Ok(_) => {
                    let (value, _) = step.store.as_ref().expect("it is a store");
                    Box::pin(after_put(&self.door, self.space, &step.key, value)).await
                }
                Err(error) => Err(error.into()),
            };
            let reply = done.unwrap_or_else(Failure::reply);
            self.tell(&step, since(began), &reply);
            replies.push((index, reply));
        }
        replies
    }

    /// Does a step that may have to wait.
    async fn one(&self, mut step: Step) -> Reply {
        let began = clock::host_now();
        let done = match &mut step.store {
            None => get(&self.door, self.space, &step.key).await,
            Some((value, announced)) => {
                let announced = announced.take().expect("it is done once");
                set(&self.door, self.space, &step.key, value, announced).await
            }
        };
        let reply = done.unwrap_or_else(Failure::reply);
        self.tell(&step, since(began), &reply);
        reply
    }

    /// Counts what was done, and keeps what took long.
    fn tell(&self, step: &Step, took: Nanos, reply: &Reply) {
        let watcher = self.door.watcher();
        let number = watcher.plain[usize::from(step.store.is_some())];
        if step.store.is_none() {
            self.door.counters().count_lookups(!matches!(reply, Reply::Null), step.times.into());
        }
        let value = step.store.as_ref().map(|(value, _)| value.bytes().unwrap_or_default());
        self.door.watch(self.client, number, took, reply, || {
            let args = [number.name().as_bytes(), step.key.as_bytes()].into_iter().chain(value);
            args.collect::<Vec<_>>().into_iter()
        });
        for _ in 1..step.times {
            let is_failed = watcher.count_error(reply);
            watcher.tallies.count(number, took, is_failed);
        }
    }
}

async fn get(door: &Door, space: KeySpaceId, key: &Key) -> Outcome {
    match door.store().get(space, key).await {
        Ok(value) => Ok(Reply::Bulk(value)),
        Err(Error::KeyNotFound | Error::NoKeySpace) => {
            if !door.store().has_key_space(hidden::roots(space)) {
                return Ok(Reply::Null);
            }
            Box::pin(again(door, async |transaction: &mut Transaction| {
                let held = values::string(transaction, space, key).await?;
                Ok(Reply::optional(held.map(|held| held.value)))
            }))
            .await
        }
        Err(error) => Err(error.into()),
    }
}

async fn set(
    door: &Door,
    space: KeySpaceId,
    key: &Key,
    value: &Buf,
    announced: Announced,
) -> Outcome {
    let store = door.store();
    // To look there may take waiting for others, who would wait for what is announced.
    let announced = Some(announced).filter(|_| !store.has_key_space(hidden::roots(space)));
    if is_collection(store, space, key).await? {
        return replace_collection(door, space, key, value).await;
    }
    put(store, space, key, value, announced.unwrap_or_else(|| store.announce())).await?;
    after_put(door, space, key, value).await
}

async fn is_collection(store: &Arc<Store>, space: KeySpaceId, key: &Key) -> Result<bool, Error> {
    let roots = hidden::roots(space);
    Ok(store.has_key_space(roots) && store.exist(roots, key).await?)
}

/// A collection that was made while a string was stored goes: none is made once there is a string.
async fn after_put(door: &Door, space: KeySpaceId, key: &Key, value: &Buf) -> Outcome {
    if is_collection(door.store(), space, key).await? {
        return replace_collection(door, space, key, value).await;
    }
    Ok(Reply::OK)
}

/// Stores a string where there is a collection, which goes in the same step.
async fn replace_collection(door: &Door, space: KeySpaceId, key: &Key, value: &Buf) -> Outcome {
    Box::pin(again(door, async |transaction: &mut Transaction| {
        values::put(transaction, space, key, value.clone(), None).await?;
        Ok(Reply::OK)
    }))
    .await
}

/// Does something as one step, until nobody comes between.
async fn again(door: &Door, does: impl AsyncFn(&mut Transaction) -> Outcome) -> Outcome {
    loop {
        let mut transaction = Transaction::new(door);
        let done = match does(&mut transaction).await {
            Ok(reply) => transaction.commit().await.map(|()| reply),
            failed => failed,
        };
        if !matches!(done, Err(Failure::Overtaken)) {
            return done;
        }
    }
}

async fn put(
    store: &Arc<Store>,
    space: KeySpaceId,
    key: &Key,
    value: &Buf,
    mut announced: Announced,
) -> Result<(), Error> {
    loop {
        match store.put(space, key, value, Write::default(), announced).await {
            Err(Error::NoKeySpace) => create(store, space).await?,
            put => return put.map(drop),
        }
        announced = store.announce();
    }
}
