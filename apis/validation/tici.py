"""Rules of full-text search (TICI-2 to TICI-5, TICI-13, TICI-22): what v1.7 accepts and cannot run is refused."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from apis import config
from apis.accessor import Component, find
from apis.component_specs import TiCIChangefeed, TiCIS3
from apis.identity import is_heterogeneous, tls_enabled
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster
from apis.toml import Table

MOUNT_CONFIG_MAP = "tiflash.tidb.pingcap.com/mount-cm-in-tiflash-container"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CHANGEFEED = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_LONGEST_CHANGEFEED = 128
_KEYS = ("access-key", "secret-key")


def check(tc: TidbCluster) -> Iterator[Problem]:
    """Check the bucket, the components that TiCI needs, and the features that it does not have."""
    tici = tc.spec.tici
    if tici is None:
        return
    for name, part in (("meta", tici.meta), ("worker", tici.worker)):
        if part is None:
            what = "is required; with replicas 0 it does not run"
            yield Problem(f"spec.tici.{name}", None, what)
    if tici.s3 is None:
        yield Problem("spec.tici.s3", None, "is required; the indexes are in a bucket")
    else:
        yield from _check_s3(tici.s3)
        yield from _check_keys(tc, tici.s3)
    yield from _check_cluster(tc)
    yield from _check_others(tc)
    if tici.changefeed is not None:
        yield from _check_changefeed(tici.changefeed)


def _check_s3(s3: TiCIS3) -> Iterator[Problem]:
    if not _is_url(s3.endpoint, "http", "https"):
        yield Problem("spec.tici.s3.endpoint", s3.endpoint, "must be a URL such as https://s3.us-east-1.amazonaws.com")
    if not _BUCKET.fullmatch(s3.bucket):
        yield Problem("spec.tici.s3.bucket", s3.bucket, "must be the name of a bucket")
    for field, text in (("region", s3.region), ("prefix", s3.prefix)):
        if not text.isprintable():
            yield Problem(f"spec.tici.s3.{field}", text, "must not contain control characters")
    if s3.secret_name and (s3.access_key or s3.secret_key):
        message = "has the keys; remove spec.tici.s3.accessKey and spec.tici.s3.secretKey"
        yield Problem("spec.tici.s3.secretName", s3.secret_name, message)


def _is_url(text: str, *schemes: str) -> bool:
    if " " in text or not text.isprintable():
        return False
    try:
        url = urlsplit(text)
        return bool(url.hostname) and (url.scheme in schemes or not schemes) and url.port != 0
    except ValueError:
        return False


def _check_keys(tc: TidbCluster, s3: TiCIS3) -> Iterator[Problem]:
    """With a Secret, the pods append the keys to the section of the bucket, so no other key may be there."""
    if not s3.secret_name:
        return
    for name, path in (("tici-meta", "s3"), ("tici-worker", "s3"), ("tiflash", "tici.s3")):
        component = find(tc, name)
        section = config.get(_tables(component), path) if component else None
        for key, value in (section if isinstance(section, dict) else {}).items():
            if key in _KEYS or isinstance(value, dict | list):
                field = f"{component.config_field if component else ''}.{path}.{key}"
                yield Problem(field, None, "must be removed; the keys come from the Secret of spec.tici.s3.secretName")


def _tables(component: Component) -> Table:
    """The configuration; empty if it is unreadable, which another check reports."""
    try:
        return component.config_tables()
    except InvalidField:
        return {}


def _check_cluster(tc: TidbCluster) -> Iterator[Problem]:
    """The features of a cluster with which TiCI does not work (TICI-4, TICI-13)."""
    spec = tc.spec
    if tls_enabled(tc):
        yield Problem(
            "spec.tici", None, "has no TLS and cannot reach PD with spec.tlsCluster.enabled; remove one of them"
        )
    if spec.across_k8s:
        yield Problem("spec.tici", None, "cannot be part of a cluster across Kubernetes; remove it or spec.acrossK8s")
    if is_heterogeneous(tc):
        yield Problem("spec.tici", None, "cannot join another cluster; put it into the one that spec.cluster names")
    if spec.pd_addresses:
        yield Problem("spec.tici", None, "knows only the PD of its own cluster; remove it or spec.pdAddresses")


def _check_others(tc: TidbCluster) -> Iterator[Problem]:
    """The components that TiCI needs (TICI-4, TICI-5)."""
    spec, tici = tc.spec, tc.spec.tici
    for name, why in (("pd", "TiCI registers with PD"), ("tidb", "TiCI keeps its catalogue in TiDB")):
        if find(tc, name) is None:
            yield Problem(f"spec.{name}", None, f"is required with spec.tici; {why}")
    if spec.tiflash is None:
        yield Problem("spec.tiflash", None, "is required with spec.tici; the reader of the indexes runs in TiFlash")
    elif spec.tiflash.annotations.get(MOUNT_CONFIG_MAP) == "true":
        field = f'spec.tiflash.annotations["{MOUNT_CONFIG_MAP}"]'
        yield Problem(field, "true", "must be removed with spec.tici; the reader needs an address in its own file")
    if spec.ticdc is None and tici is not None and tici.feeds:
        what = "is required by the changefeed of spec.tici; add it, or set spec.tici.changefeed.enable to false"
        yield Problem("spec.ticdc", None, what)
    yield from _check_login(tc)


def _check_login(tc: TidbCluster) -> Iterator[Problem]:
    """TiCI-meta logs in as root without a password unless its configuration has another DSN (TICI-14)."""
    meta, tidb = find(tc, "tici-meta"), tc.spec.tidb
    if meta is None or tidb is None or tidb.initializer is None or not tidb.initializer.create_password:
        return
    if config.get(_tables(meta), "tidb-server.dsns") is None:
        message = (
            'is required, such as ["mysql://user:password@host:4000"]; spec.tidb.initializer gives root a password'
        )
        yield Problem(f"{meta.config_field}.tidb-server.dsns", None, message)


def _check_changefeed(feed: TiCIChangefeed) -> Iterator[Problem]:
    if feed.sink_uri and not _is_url(feed.sink_uri):
        yield Problem(
            "spec.tici.changefeed.sinkURI", None, "must be a URI such as s3://bucket/prefix?protocol=canal-json"
        )
    name = feed.changefeed_id
    if name and (len(name) > _LONGEST_CHANGEFEED or not _CHANGEFEED.fullmatch(name)):
        message = f"must be at most {_LONGEST_CHANGEFEED} letters, digits and single hyphens"
        yield Problem("spec.tici.changefeed.changefeedID", name, message)
