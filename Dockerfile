# The image of the controller-manager, of Discovery and of the scheduler's extender; with `--target backup-manager` that of the Jobs of Backups and
# Restores. The stages with `build` in their names build, the others only run.
# The digest is that of the index for all architectures, of August 2026 (Python 3.11.16, Debian 13). Another base:
#   docker build --build-arg BASE=python:3.11-slim@sha256:... .
ARG BASE=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
ARG DUMPLING=pingcap/dumpling:v8.5.2
ARG LIGHTNING=pingcap/tidb-lightning:v8.5.2
FROM ${BASE} AS build
COPY . /src
RUN python -m venv --without-pip /opt/tidb-operator
RUN python -m pip --python /opt/tidb-operator/bin/python install --no-cache-dir --no-compile --require-hashes \
    --only-binary=:all: --requirement /src/hack/image/requirements.lock
RUN python -m venv /opt/build
RUN /opt/build/bin/python -m pip install --no-cache-dir --require-hashes --only-binary=:all: \
    --requirement /src/hack/image/build.lock
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation \
    --wheel-dir /opt/build/wheels /src
RUN python -m pip --python /opt/tidb-operator/bin/python install --no-cache-dir --no-compile --no-index --no-deps \
    --find-links /opt/build/wheels tidb-operator-py
# The commands of cli/, which the image does not have (.dockerignore), and that of another image
RUN rm /opt/tidb-operator/bin/tidb-operator /opt/tidb-operator/bin/kubectl-tidb \
    /opt/tidb-operator/bin/kubectl_complete-tidb /opt/tidb-operator/bin/backup-manager
# The root of a pod is read-only, so a module that is not compiled here is compiled at every start. No pod loads
# `kubernetes`, which only the auth providers of kubeconfigs need; compiled, its models take twice the space.
RUN /opt/tidb-operator/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    -x /site-packages/kubernetes/ /opt/tidb-operator/lib

FROM build AS backup-build
# kms.lock also brings what spec.useKMS needs
ARG LOCK=backup.lock
RUN python -m venv --without-pip /opt/backup-manager
RUN python -m pip --python /opt/backup-manager/bin/python install --no-cache-dir --no-compile --require-hashes \
    --only-binary=:all: --requirement /src/hack/image/${LOCK}
RUN python -m pip --python /opt/backup-manager/bin/python install --no-cache-dir --no-compile --no-index --no-deps \
    --find-links /opt/build/wheels tidb-operator-py
RUN /opt/backup-manager/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    -x /site-packages/kubernetes/ /opt/backup-manager/lib

FROM ${DUMPLING} AS dumpling

FROM ${LIGHTNING} AS lightning

# As v1.6's, it has Dumpling and TiDB Lightning, and no BR: an init container brings the one of the cluster's version. And as
# there it runs as root, unless spec.podSecurityContext says otherwise: on a volume it deletes what TiKV has written as root.
# v1.6's entrypoint is what the command does itself: credentials, signals, the mark for sidecars, commands of others.
FROM ${BASE} AS backup-manager
RUN python -m pip uninstall --yes --root-user-action=ignore setuptools wheel pip
COPY --from=dumpling /dumpling /dumpling
COPY --from=lightning /tidb-lightning /tidb-lightning
COPY --from=backup-build /opt/backup-manager /opt/backup-manager
RUN ln -s /opt/backup-manager/bin/backup-manager /usr/local/bin/
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tidb-operator-py-backup-manager" \
    org.opencontainers.image.description="Jobs of Backups and Restores of TiDB Operator in Python" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.licenses="Apache-2.0"
ENTRYPOINT ["/usr/local/bin/backup-manager"]

FROM ${BASE}
# The interpreter stays, its build tools do not; the base comes without compiled modules
RUN python -m pip uninstall --yes --root-user-action=ignore setuptools wheel pip \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/(test|tests|lib2to3)/' \
    "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=build /opt/tidb-operator /opt/tidb-operator
# The paths that manifests and the Discovery Deployment call; those of v1.6 among them
RUN ln -s /opt/tidb-operator/bin/tidb-discovery /opt/tidb-operator/bin/tidb-controller-manager \
    /opt/tidb-operator/bin/tidb-controller-manager-check /opt/tidb-operator/bin/tidb-scheduler /usr/local/bin/
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tidb-operator-py" \
    org.opencontainers.image.description="Controller-manager, Discovery and scheduler of TiDB Operator in Python" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
CMD ["/usr/local/bin/tidb-controller-manager"]
