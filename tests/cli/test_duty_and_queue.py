from tests.cli.conftest import CommandLine


def actions(cli: CommandLine) -> list[str]:
    return [entry["action"] for entry in cli.audit_trail()][3:]


def test_a_doctor_goes_on_and_off_duty(cli: CommandLine, group: str, plan: str) -> None:
    doctor = ("--provider-group", group, "--doctor", "dr-1")
    known = {"provider_group_id": int(group), "doctor": "dr-1"}
    assert cli.json("duty", "on", *doctor) == known | {"on_duty": True, "changed": True}
    assert cli.json("duty", "on", *doctor)["changed"] is False
    [listed] = cli.json("duty", "list")
    assert list(listed) == ["provider_group_id", "doctor", "since_at"]
    assert cli.json("duty", "off", *doctor) == known | {"on_duty": False, "changed": True}
    assert cli.json("duty", "list") == []
    assert actions(cli) == ["doctor.on_duty", "doctor.off_duty"]


def test_people_are_told_in_a_sentence(cli: CommandLine, group: str, plan: str) -> None:
    doctor, patient = (
        ("--provider-group", group, "--doctor", "dr-1"),
        ("--plan", plan, "--patient", "visit-1"),
    )
    assert "dr-1" in cli.text("duty", "on", *doctor)
    assert "is already on duty" in cli.text("duty", "on", *doctor)
    assert "dr-1" in cli.text("duty", "list")
    assert "is off duty" in cli.text("duty", "off", *doctor)
    assert cli.text("duty", "list") == "No doctor is on duty.\n"
    assert "now waits" in cli.text("queue", "join", *patient)
    assert "waits already" in cli.text("queue", "join", *patient)
    assert "visit-1" in cli.text("queue", "list")
    assert "waits no longer" in cli.text("queue", "leave", *patient)
    assert "was not waiting" in cli.text("queue", "leave", *patient)
    assert cli.text("queue", "list") == "Nobody is waiting.\n"


def test_a_patient_joins_and_leaves_a_queue(cli: CommandLine, group: str, plan: str) -> None:
    patient = ("--plan", plan, "--patient", "visit-1")
    known = {"plan_id": int(plan), "patient": "visit-1"}
    assert cli.json("queue", "join", *patient) == known | {"waiting": True, "changed": True}
    [listed] = cli.json("queue", "list")
    assert list(listed) == ["plan_id", "patient", "joined_at"]
    assert cli.json("queue", "join", *patient)["changed"] is False
    assert cli.json("queue", "list") == [listed]
    assert cli.json("queue", "leave", *patient) == known | {"waiting": False, "changed": True}
    assert cli.json("queue", "leave", *patient)["changed"] is False
    assert actions(cli) == ["queue.joined", "queue.left"]


def test_unknown_groups_and_plans_are_told(cli: CommandLine) -> None:
    for word in ("on", "off"):
        said = cli.refused("duty", word, "--provider-group", "7", "--doctor", "dr-1")
        assert "frontdesk provider-group list" in said
    for word in ("join", "leave"):
        assert "frontdesk plan list" in cli.refused("queue", word, "--plan", "7", "--patient", "visit-1")


def test_a_blank_reference_is_refused(cli: CommandLine, group: str, plan: str) -> None:
    assert "--doctor must not be blank" in cli.refused(
        "duty", "on", "--provider-group", group, "--doctor", " "
    )
    assert "--patient must not be blank" in cli.refused("queue", "join", "--plan", plan, "--patient", "")
