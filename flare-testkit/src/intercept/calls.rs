//! Takes the calls of a port, a line each; gives the trait of hooks that may answer them, and the port
//! whose calls go through these.

/// Writes both. A port's calls are of these shapes: `one` thing; `many` items that are answered as a
/// whole; a `batch` with an answer for each item; a `scan`. What a call takes beside its items is in
/// brackets. One `of` a queue names it to the hooks, which may choose another. What is of no shape
/// stands in the first block for the hooks, and in `also` for the port.
macro_rules! intercepted {
    (
        $(#[$doc:meta])*
        $hooks:ident for dyn $whole:ident { $($own:tt)* }
        $($port:ident {
            $(one {
                $(fn $one:ident($($one_arg:ident: $one_type:ty),*)$( of $one_of:ident)? -> $one_out:ty;)*
            })?
            $(many {
                $(fn $many:ident$([$many_arg:ident: $many_type:ty])?($many_item:ty) -> $many_out:ty;)*
            })?
            $(batch {
                $(fn $batch:ident$([$batch_arg:ident: $batch_type:ty])?($item:ty)
                    $([$last:ident: $last_type:ty])? $(of $batch_of:ident)? -> $batch_out:ty;)*
            })?
            $(scan { $(fn $scan:ident($($scan_arg:ident: $scan_type:ty),*) -> $scan_out:ty;)* })?
            $(also { $($also:tt)* })?
        })*
    ) => {
        $(#[$doc])*
        #[async_trait::async_trait]
        pub trait $hooks: Hooks {
            $($own)*
            $($($(
                /// In place of the call.
                async fn $one(
                    &self, inner: &dyn $whole, $($one_arg: $one_type),*
                ) -> Result<$one_out> {
                    inner.$one($($one_arg),*).await
                }
            )*)?)*
            $($($(
                /// In place of the call.
                async fn $many(
                    &self, inner: &dyn $whole, $($many_arg: $many_type,)? items: Vec<$many_item>,
                ) -> Result<$many_out> {
                    inner.$many($($many_arg,)? items).await
                }
            )*)?)*
            $($($(
                /// In place of the call.
                async fn $batch(
                    &self,
                    inner: &dyn $whole,
                    $($batch_arg: $batch_type,)?
                    items: Vec<$item>,
                    $($last: $last_type,)?
                ) -> Vec<Result<$batch_out>> {
                    inner.$batch($($batch_arg,)? items $(, $last)?).await
                }
            )*)?)*
            $($($(
                /// In place of the call.
                fn $scan<'a>(
                    &'a self, inner: &'a dyn $whole, $($scan_arg: $scan_type),*
                ) -> Scan<'a, $scan_out> {
                    inner.$scan($($scan_arg),*)
                }
            )*)?)*
        }

        $(
            #[async_trait::async_trait]
            impl<H: $hooks> flare_core::port::$port for Intercepted<dyn $whole, H> {
                $($(
                    async fn $one(&self, $($one_arg: $one_type),*) -> Result<$one_out> {
                        $(let $one_of = &self.hooks.reached($one_of);)?
                        let call = Call::new(stringify!($one), 1)$(.of($one_of))?;
                        let run = self.hooks.$one(&*self.inner, $($one_arg),*);
                        around(&*self.hooks, call, run).await
                    }
                )*)?
                $($(
                    async fn $many(
                        &self, $($many_arg: $many_type,)? items: Vec<$many_item>,
                    ) -> Result<$many_out> {
                        let call = Call::new(stringify!($many), items.len());
                        let run = self.hooks.$many(&*self.inner, $($many_arg,)? items);
                        around(&*self.hooks, call, run).await
                    }
                )*)?
                $($(
                    async fn $batch(
                        &self,
                        $($batch_arg: $batch_type,)?
                        items: Vec<$item>,
                        $($last: $last_type,)?
                    ) -> Vec<Result<$batch_out>> {
                        $(let $batch_of = &self.hooks.reached($batch_of);)?
                        let call = Call::new(stringify!($batch), items.len())$(.of($batch_of))?;
                        let run = |items| {
                            self.hooks.$batch(&*self.inner, $($batch_arg,)? items $(, $last)?)
                        };
                        self.hooks.batch(call, items, run).await
                    }
                )*)?
                $($(
                    fn $scan(&self, $($scan_arg: $scan_type),*) -> Scan<'_, $scan_out> {
                        let scan = self.hooks.$scan(&*self.inner, $($scan_arg),*);
                        self.hooks.scan(Call::new(stringify!($scan), 0), scan)
                    }
                )*)?
                $($($also)*)?
            }
        )*
    };
}
pub(super) use intercepted;
