"""The API of DM's masters, answer by answer (dataplane-apis.md 11). Refusals are HTTP successes."""

import json
from urllib.parse import parse_qs, unquote, urlsplit

from kube.objects import Json
from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.dm.book import Book
from sandbox.dataplane.pd.cluster import Member, PdCluster, RemovalRefused
from sandbox.dataplane.pd.process import PdProcess
from sandbox.dataplane.processes import Answer, not_found

_PREFIX = "/apis/v1alpha1/"


def answer(process: PdProcess, request: Request, deps: Dependencies) -> Answer:
    """The answer of a serving master; others forward to the leader what only it can answer."""
    cluster, parts = process.cluster, urlsplit(request.url)
    if cluster is None or not parts.path.startswith(_PREFIX):
        return Answer(not_found())
    leader = cluster.leader
    if leader is None or (leader is not process.member and not _reaches(leader, process)):
        return Answer(_refusal("[code=38032:class=dm-master:scope=internal:level=high] no leader is elected"))
    book = Book(cluster.etcd, deps.clock.now())
    response = not_found()
    match request.method, unquote(parts.path.removeprefix(_PREFIX)).split("/"):
        case "GET", ["members"]:
            response = _members(cluster, leader, book, set(parse_qs(parts.query)))
        case "PUT", ["leader", "1"]:
            response = _evict(process, cluster, leader)
        case "DELETE", ["members", "master", name]:
            response = _take_out_master(cluster, name)
        case "DELETE", ["members", "worker", name]:
            response = _take_out_worker(book, name)
    return Answer(response)


def _reaches(leader: Member, process: PdProcess) -> bool:
    return leader.voter is not None and leader.voter.answers(process.origin)


def _members(cluster: PdCluster, leader: Member, book: Book, asked: set[str]) -> Response:
    found: list[Json] = []
    if "leader" in asked:
        found.append({"leader": {"msg": "", "name": leader.name, "addr": _address(leader)}})
    if "master" in asked:
        masters = [_shown(member) for member in sorted(cluster.members.values(), key=lambda each: each.name)]
        found.append({"master": {"msg": "", "masters": masters}})
    if "worker" in asked:
        book.schedule()
        workers = [
            {"name": worker.name, "addr": worker.address, "stage": worker.stage, "source": worker.source}
            for worker in book.workers()
        ]
        found.append({"worker": {"msg": "", "workers": workers}})
    return _agreed(members=found)


def _shown(member: Member) -> Json:
    shown: Json = {"name": member.name, "memberID": str(member.id), "peerURLs": [member.peer_url]}
    # false is omitted
    alive = {"alive": True} if member.healthy else {}
    return shown | alive | {"clientURLs": [member.client_url] if member.client_url else []}


def _address(member: Member) -> str:
    return member.client_url.rpartition("://")[2]


def _evict(process: PdProcess, cluster: PdCluster, leader: Member) -> Response:
    if leader is not process.member:
        return _refusal(f"the current master is not the leader, the leader is {leader.name}")
    cluster.transfer(None)
    return _agreed()


def _take_out_master(cluster: PdCluster, name: str) -> Response:
    member = next((each for each in cluster.members.values() if each.name == name), None)
    if member is None:
        return _refusal(f"[code=38041:class=dm-master] dm-master with name {name} not exists")
    try:
        cluster.remove(member.id)
    except RemovalRefused as refused:
        return _refusal(str(refused))
    return _agreed()


def _take_out_worker(book: Book, name: str) -> Response:
    worker = next((each for each in book.workers() if each.name == name), None)
    if worker is None:
        return _refusal(f"[code=46007:class=scheduler] dm-worker with name {name} not exists")
    if worker.stage != "offline":
        return _refusal(f"[code=46002:class=scheduler] dm-worker with name {name} is still online")
    book.take_out(name)
    return _agreed()


def _agreed(**more: object) -> Response:
    return _json({"result": True, "msg": "", **more})


def _refusal(message: str) -> Response:
    return _json({"result": False, "msg": message})


def _json(body: Json) -> Response:
    return Response(200, {"content-type": "application/json"}, json.dumps(body).encode())
