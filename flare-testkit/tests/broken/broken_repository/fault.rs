//! The faults, and which clause each of them breaks.

macro_rules! faults {
    ($($clause:literal: $($name:ident),+;)*) => {
        /// One way of breaking the contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fault {
            /// Breaks nothing.
            None,
            $($(#[doc = $clause] $name),+),*
        }

        impl Fault {
            /// Every fault with the clause it breaks.
            pub(crate) const ALL: &[(Self, &str)] = &[$($((Self::$name, $clause)),+),*];
        }
    };
}

faults! {
    "re1": EndpointConflictPasses, EndpointConflictNamesNoField, SameResourceConflicts;
    "re2": CreationTimeRounded;
    "re3": MatchesDeletingOnes, MatchIsCached, MatchPrefersTheOldest,
        MatchesAnswerOutOfOrder, MatchesLeaveOutMisses, MatchesTheBestAlone, MatchesLeastSpecificNext;
    "re4": ResourcesNewestFirst, ResourceTotalIsOfThePage;
    "re5": MovesFromAnyState, MoveAlwaysSaysYes;
    "re6": RemovesActiveResources, DeletedResourceStays;
    "rs1": InsertReturnsWhatWasGiven;
    "rs2": PartitionOverItsLimit, SeatsStayEmpty;
    "rs3": UrlConflictPasses, ReplacementTakesUrls;
    "rs4": NewestPartitionUnnamed;
    "rs5": MembersAtTheFirstGeneration, DeletingOnesAreMembers, MembersAreActive,
        MembersAreUnfiltered;
    "rs6": ReplacesAtAnyGeneration, LoserLearnsNothing;
    "rs7": SubscriptionsNewestFirst, ScanSkipsDeletingOnes;
    "rs8": LanesOutliveTheirSubscription;
    "rs9": SecretsLost;
    "rs10": SlotsForgetWhoLeaves, SlotsForgetWhoIsReserved, SlotsGiveEverybody, SlotScanBeginsAnew;
    "rs11": MembersOfOneResourceAlone, DeletingOnesAreScanned, MembersScannedTwice;
    "rd1": StaleSaysUnchanged, EveryWriterCreates, LeavesWhateverIsThere;
    "rd2": ContentIsRewritten, EqualRevisionReplaces, DeleteDropsContent;
    "rd3": DispatchedIsAFlag, SilentTombstonesAreUndispatched, RaisedTombstonesAreDispatched,
        OpenSetSurvives;
    "rd4": BatchRunsBackwards;
    "rd5": OpenAnswersWhatWasAsked, OpensAtAnyVersion;
    "rd6": FirstRemovalDispatches, ClosesAtAnyVersion;
    "rd7": MarksWhateverIsStored;
    "rd8": FindsWhatIsTooYoung, UndispatchedMiscounted;
    "rd9": RemovesUndispatched, RemovesAnyVersion;
    "rd10": ScanRepeatsTheLast, TombstonesTooYoung, TombstonesLatestFirst;
    "rd11": RemovesOneDocumentMore;
    "rd12": TooLargeSaysBusy;
    "rd13": DeletesLoseTheirTrace;
    "rd14": HeadsCarryContent, HeadsLeaveOutMisses;
    "rd15": LaterChangesDropTheNote, NotesOutliveTheirDispatch, UndispatchedOnesShowNoNote;
    "rd16": CountsOneDocumentMore;
    "rd17": EveryPutIsBeside;
    "rr1": EpochsDrawnTwice, TimeOfAnotherClock;
    "rr2": GenerationLost, SettledIsWantedAgain;
    "rr3": FenceIgnored, OvertakenSaysDone, SettlingForgetsPresent;
    "rr4": SpreadLostBesideAnEffect;
    "rr5": PendingLatestFirst, BucketsIgnored, DueByIsExclusive, OnePendingRowMore;
    "rr6": LagOffByOne, NextDueForgotten;
    "rr7": ClaimsHandedOutTwice, LapsedClaimsSettle, BeatenPullersGetNothing;
    "rr8": NewestDeathFirst, DeadLettersLoseTheirError, DeadLettersFoundOutOfOrder;
    "rr9": ReplaysTwice, ReplayRestartsWhatIsPending;
    "rr10": RetentionReplays, RetentionIsImpatient, RetentionTakesOneMore;
    "rr11": ExpeditesOneMore, ExpeditingForgetsAttempts;
    "rr12": RemovesOneRowMore, KeptSaysRemoved, RemovesNewerRows;
    "rr13": LaneFenceIgnored, LanesOutOfOrder, LanesOfNobodySayDone;
    "rr14": RowsComeSorted;
    "rr15": RowsOfRepeatTheLast, RowsOfAnotherResource, OneRowOfADocumentMore;
    "rr16": RefusedMakesARow;
    "rr17": RoundsBeginAgain;
    "rr18": DemandsOneMore, DemandIgnored, BeatenDemandsMarkNothing;
    "rr19": SpreadsWhatIsOvertaken, SpreadTellsNoMember;
    "rr20": SpreadsOneOfSeveralPartitions;
    "rr21": SpreadDispatchesWhatItLeaves, SpreadNeverDispatches;
    "rr22": SpreadGivesRowsOfBefore, SpreadGivesAnyContent;
    "rr23": OneThatIsBehindIsLeftOut, CountsOfEachOffByOne, AgeOfEachForgotten, EveryoneIsCounted;
    "rr24": OneLaneIsLeftOut, ScannedLanesLoseTheirEpoch;
    "rj1": InsertingJobsAlwaysSaysYes;
    "rj2": JobsLatestFirst, OneDueJobMore, DueJobsAreOverdue;
    "rj3": JobFenceIgnored, CursorLost, FinishingIsNotFenced;
    "rj4": FinishedJobsStay;
    "rj5": FindsOnlyDueJobs;
    "rj6": ClaimsJobsNotDue, ClaimsJobsAsTheyWere;
    "rj7": ListsDueJobsAlone, JobsListedNewestFirst, JobTotalIsOfThePage;
    "rc1": ConsumerInsertReturnsWhatWasGiven, SecondInsertOfAConsumerReplaces, ConsumersLoseNulls;
    "rc2": ConsumersReplacedAtAnyGeneration, ConsumersReplacedWithWhatWasGiven,
        BeatenReplacementLearnsNothing, ReplacedConsumersLoseTheirState,
        ReplacedConsumersLoseTheirRejects;
    "rc3": ConsumersNewestFirst, ConsumerTotalIsOfThePage, ConsumerScanRepeatsTheLast,
        ConsumerScanBackwards;
    "rc4": StatesOutliveTheirConsumer, RejectsOutliveTheirConsumer, LateStatesSayDone,
        LateStatesStay, LateRejectsStay, CrossingStatesStay, CrossingRejectsStay,
        ConsumersRemovedAtAnyGeneration, ConsumersRemovedAfterALook, ConsumersLeftSayGone;
    "rc5": StateFenceIgnored, EqualEpochsAreFenced, StateEpochsLost, StatesOfOneConsumerAlone,
        ClaimsFenceNothing, ClaimsForgetTheState;
    "rc6": RejectsStayAsTheyWere, OneRejectMoreIsKept, RejectsKeptFirst, EveryConsumerKeepsTheLast,
        RejectsOfNobodyWait;
    "rc7": RejectsNewestFirst, RejectTotalIsOfThePage, RejectBodiesAreText, RejectsOfAnyConsumer;
    "rc8": RemovesRejectsOfAnyConsumer, RemovesAllRejects, ExpiresAtTheTimeItself,
        ExpiresOneRejectMore, ExpiringSaysTheLimit, ExpiresRejectsOfAnyConsumer;
    "ra1": AuditDetailsLost, AuditEntriesReplaced, KnownEntriesHoldUpOthers;
    "ra2": AuditOldestFirst, AuditTotalIsOfThePage, AuditOfEverySubject, AuditSubjectsIgnoreCase;
    "ra3": TrimsOneEntryMore, TrimsTheNewest, TrimsTheTimeItself, TrimSaysTheLimit;
    "ru1": UnreadableRowsAreMissing;
    "ru2": ScanEndsAtUnreadable, UnreadableTakesAPlace;
    "ru3": ListFailsWithUnreadable;
    "ru4": UnreadableMatchesNothing;
    "ru5": UnreadableIsNoMember;
    "ru6": DiscardReadsFirst;
    "ru7": ReplacementInsertsAnew;
    "ru8": DamagedJobsHoldTheirPlace;
    "ru9": NewerDocumentsAreAnswered;
}
