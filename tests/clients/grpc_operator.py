"""An operator with nothing of ours: Python's grpcio, which learns the services by reflection, against `tokkuri serve`.

    python grpc_operator.py GRPC HTTP_URL TOKKURI TOKEN
"""

import subprocess
import sys
import time
import traceback

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

GRPC, URL, TOKKURI, TOKEN = sys.argv[1:]
LIMIT_S = 20
ADMIN = "tokkuri.v1.Admin"

CHANNEL = grpc.insecure_channel(GRPC)
REFLECTION = ProtoReflectionDescriptorDatabase(CHANNEL)
POOL = descriptor_pool.DescriptorPool(REFLECTION)


def message(name, **fields):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))(**fields)


def call(service, method, /, token=TOKEN, **fields):
    described = POOL.FindServiceByName(service).FindMethodByName(method)
    answer = message_factory.GetMessageClass(described.output_type)
    kind = CHANNEL.unary_stream if described.server_streaming else CHANNEL.unary_unary
    stub = kind(
        f"/{service}/{method}",
        request_serializer=lambda it: it.SerializeToString(),
        response_deserializer=answer.FromString,
    )
    metadata = [("authorization", f"Bearer {token}")] if token else []
    return stub(message(described.input_type.full_name, **fields), metadata=metadata, timeout=LIMIT_S)


def status(name):
    return POOL.FindEnumTypeByName("tokkuri.v1.TaskStatus").values_by_name[f"TASK_STATUS_{name}"].number


def filtered(**fields):
    return message("tokkuri.v1.TaskFilter", **fields)


def waiting_task():
    """A task that waits for an answer."""
    made = subprocess.run([TOKKURI, "call", "ask_name", "--url", URL, "--detach"], capture_output=True, text=True, check=True)
    task, deadline = made.stdout.strip(), time.monotonic() + LIMIT_S
    while call(ADMIN, "GetTask", id=task).status != status("INPUT_REQUIRED"):
        assert time.monotonic() < deadline, task
    return task


def refused(code, method, token=TOKEN, **fields):
    try:
        call(ADMIN, method, token=token, **fields)
    except grpc.RpcError as error:
        assert error.code() == code, error
        details = dict(error.trailing_metadata()).get("grpc-status-details-bin")
        assert details and b"google.rpc.ErrorInfo" in details, error
    else:
        raise AssertionError(f"{method} was not refused")


def finds_the_services_by_reflection():
    services = REFLECTION.get_services()
    assert {ADMIN, "tokkuri.v1.Peer", "grpc.health.v1.Health"} <= set(services), services


def is_told_that_the_server_is_healthy():
    answer = call("grpc.health.v1.Health", "Check", token=None, service=ADMIN)
    assert answer.status == answer.DESCRIPTOR.enum_types_by_name["ServingStatus"].values_by_name["SERVING"].number, answer


def lists_tasks_page_by_page():
    tasks = {waiting_task() for _ in range(3)}
    wanted, seen, token = filtered(statuses=[status("INPUT_REQUIRED")], tool="ask_name"), [], ""
    while True:
        page = call(ADMIN, "ListTasks", filter=wanted, page_size=2, page_token=token)
        assert len(page.tasks) <= 2, page
        seen += [task.id for task in page.tasks]
        token = page.next_page_token
        if not token:
            break
    assert tasks <= set(seen) and len(seen) == len(set(seen)), (tasks, seen)
    nodes = call(ADMIN, "ListNodes").nodes
    assert len(nodes) == 1 and nodes[0].alive and nodes[0].answering, nodes


def watches_and_cancels():
    task = waiting_task()
    watch = call(ADMIN, "WatchTasks", filter=filtered(tool="ask_name"))
    # What changes after this is told.
    watch.initial_metadata()
    cancelled = call(ADMIN, "CancelTask", id=task)
    assert cancelled.status == status("CANCELLED"), cancelled
    told = next(change.task for change in watch if change.task.id == task)
    assert (told.status, told.revision) == (status("CANCELLED"), cancelled.revision), told
    watch.cancel()


def sees_payloads_only_if_it_asks():
    task = waiting_task()
    assert not call(ADMIN, "GetTask", id=task).HasField("payloads")
    payloads = call(ADMIN, "GetTask", id=task, include_payloads=True).payloads
    assert "name" in payloads.questions and payloads.questions["name"].request_json.startswith("{"), payloads


def is_refused_with_a_status_and_its_details():
    refused(grpc.StatusCode.UNAUTHENTICATED, "ListNodes", token=None)
    refused(grpc.StatusCode.UNAUTHENTICATED, "ListNodes", token="another")
    refused(grpc.StatusCode.NOT_FOUND, "GetTask", id="A" * 24)
    refused(grpc.StatusCode.INVALID_ARGUMENT, "ListTasks", page_token="nonsense")


def main():
    failed = 0
    claims = [
        finds_the_services_by_reflection,
        is_told_that_the_server_is_healthy,
        lists_tasks_page_by_page,
        watches_and_cancels,
        sees_payloads_only_if_it_asks,
        is_refused_with_a_status_and_its_details,
    ]
    for claim in claims:
        name, started = claim.__name__.replace("_", " "), time.monotonic()
        try:
            claim()
            print(f"ok   an operator in Python {name} ({(time.monotonic() - started) * 1000:.0f} ms)")
        except BaseException:
            failed += 1
            print(f"FAIL an operator in Python {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"test result: {'FAILED' if failed else 'ok'}. {len(claims) - failed} passed; {failed} failed")
    sys.exit(1 if failed else 0)


main()
