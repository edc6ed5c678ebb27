use crate::door::Door;
use crate::failure::Failure;
use crate::transaction::Transaction;

impl Door {
    /// Executes `work` on a transaction of its own and commits that; again, until no other writer
    /// overtakes it.
    pub(crate) async fn one_step<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Transaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let mut transaction = self.transaction();
            let done = work(&mut transaction).await;
            let lookups = transaction.take_lookups();
            let done = match done {
                Ok(done) => transaction.commit().await.map(|()| done),
                failed => failed,
            };
            if !matches!(done, Err(Failure::Overtaken)) {
                lookups.count(self.counters());
                return done;
            }
        }
    }
}
