"""Histories that were found, as tests (CONTRIBUTING.md, A family history).

`KEPT` are those that violated a law, or were found to be at risk.
"""

from tests.histories.drawing import History
from tests.histories.senders import FULL, TABLE, Habits
from tests.histories.world import Event, Family, Round

LATER_LIST = Habits(form=TABLE, lists="next month")
NAMES_PLANS = Habits(names_plans=True, has_hd=False)
WIDOW = (Event("die", lag=-60, variant=3),)
KEPT: dict[str, History] = {
    "a table takes an announced end back by an empty cell": History(
        families=(Family(),),
        rounds=(Round(7, (Event("leave", lag=45),)), Round(7, (Event("reinstate"),))),
        habits=Habits(form=TABLE, has_expiry=True),
    ),
    "a begin by DTP*303 while a coverage that ends is in force": History(
        families=(Family(),),
        rounds=(Round(7, (Event("leave", lag=12),)), Round(3, (Event("rehire", lag=45),))),
        habits=Habits(begin_by="303"),
    ),
    "a newborn gets a name": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("birth"),)), Round(30, (Event("name_child"),))),
        habits=Habits(newborn="BABY BOY"),
    ),
    "twins without a name get names": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("birth", variant=1),)), Round(30, (Event("name_child"),) * 2)),
        habits=Habits(form=FULL, newborn="BABY BOY"),
    ),
    "a widow takes the number of the dead in a full file": History(
        families=(Family(spouse=True),), rounds=(Round(61, WIDOW),), habits=Habits(form=FULL)
    ),
    "a widow takes the number of the dead in a change file": History(
        families=(Family(spouse=True),), rounds=(Round(61, WIDOW),)
    ),
    "a number is used again in a table": History(
        families=(Family(),),
        rounds=(Round(30, (Event("leave"),)), Round(330, (Event("reuse"),))),
        habits=Habits(form=TABLE),
    ),
    "two employers have the same numbers": History(
        families=(Family(),), rounds=(Round(7, (Event("second_job"),)),), habits=Habits(form=TABLE)
    ),
    "the list of a later day": History(
        families=(Family(),), rounds=(Round(30),), habits=LATER_LIST
    ),
    "a child that the list of a later day omits": History(
        families=(Family(children=2),), rounds=(Round(61, (Event("age_out"),)),), habits=LATER_LIST
    ),
    "the begin of a new plan one file after the end of the old one": History(
        families=(Family(),),
        rounds=(Round(1, (Event("renew_all"),)), Round(1)),
        habits=Habits(ends_first=True),
    ),
    "a dental coverage ends by DTP*357": History(
        families=(Family(has_dental=True),),
        rounds=(Round(7, (Event("end_dental"),)),),
        habits=Habits(dental_end_by="357"),
    ),
    "a change of the plan is taken back by 002": History(
        families=(Family(),), rounds=(Round(1, (Event("renew_all"),)), Round(1, (Event("cancel"),)))
    ),
    "a begin by DTP*303 some time after an end": History(
        families=(Family(),),
        rounds=(Round(7, (Event("leave"),)), Round(61, (Event("rehire", lag=45),))),
        habits=Habits(begin_by="303"),
    ),
    "a change of the plan, announced ahead, by the name of the plan": History(
        families=(Family(),), rounds=(Round(7, (Event("switch"),)),), habits=NAMES_PLANS
    ),
    "a new name without a coverage under a plan by name": History(
        families=(Family(plan=1),), rounds=(Round(7, (Event("correct"),)),), habits=NAMES_PLANS
    ),
    "a coverage is reinstated under a plan by name": History(
        families=(Family(plan=1),),
        rounds=(Round(7, (Event("leave"),)), Round(30, (Event("reinstate"),))),
        habits=NAMES_PLANS,
    ),
    "a change of the plan is taken back by an end before its begin": History(
        families=(Family(),),
        rounds=(Round(14, (Event("switch"),)), Round(61, (Event("cancel"),))),
        habits=Habits(cancel_by="024"),
    ),
    "a coverage is reinstated": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("leave"),)), Round(30, (Event("reinstate"),))),
    ),
    "a widow in a table without names takes the number of the dead": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("die", lag=-20, variant=7),)),),
        habits=Habits(form=TABLE, has_names=False),
    ),
    "the plan of a child is renewed before the child is covered": History(
        families=(Family(), Family(plan=1)),
        rounds=(Round(3, (Event("adopt", who=1, lag=45),)), Round(7, (Event("renew_all"),))),
        habits=Habits(has_hd=False),
    ),
    "a census of next year puts off the begin of a child": History(
        families=(Family(), Family()),
        rounds=(Round(3, (Event("adopt", lag=45),)), Round(7, (Event("renew_all"),))),
        habits=Habits(form=TABLE, lists="next year"),
        start=310,
    ),
    "a census of next year whose rows begin on the day of hire": History(
        families=(Family(children=2),),
        rounds=(Round(30, (Event("age_out"), Event("renew_all"))),),
        habits=Habits(form=TABLE, lists="next year", hired=True),
        start=310,
    ),
    "a new name beside an announced plan that is taken back": History(
        families=(Family(),),
        rounds=(Round(7, (Event("switch"),)), Round(7, (Event("take_name"), Event("leave")))),
        habits=Habits(end_code="001"),
    ),
    "one day that is yet to come is taken back": History(
        families=(Family(),),
        rounds=(
            Round(1, (Event("adopt", lag=45), Event("die", lag=45))),
            Round(1, (Event("rehire"),)),
        ),
        habits=Habits(form=FULL),
    ),
    "a plan is renewed in the fourth year": History(
        families=(Family(),),
        rounds=(Round(330), Round(330), Round(330, (Event("renew_all"),))),
        start=240,
    ),
    "a list of the next month names those who have left": History(
        families=(Family(spouse=True), Family(spouse=True, children=1)),
        rounds=(Round(7, (Event("age_out"), Event("leave"))),),
        habits=Habits(form=TABLE, lists_left=True, lists="next month"),
        start=240,
    ),
}
