# The image of the controller-manager and of Discovery. The first stage builds, the second only runs.
# The base is a tag here, so that the file stays true: pin it by digest with
#   docker build --build-arg BASE=python:3.11-slim@sha256:... .
ARG BASE=python:3.11-slim
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
# The command with the sandbox in it, which the image does not have (.dockerignore)
RUN rm /opt/tidb-operator/bin/tidb-operator
# The root of a pod is read-only: what is not compiled here is compiled at every start
RUN /opt/tidb-operator/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/tidb-operator/lib

FROM ${BASE}
# The interpreter stays, its build tools do not; the base comes without compiled modules
RUN python -m pip uninstall --yes --root-user-action=ignore setuptools wheel pip \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/(test|tests|lib2to3)/' \
    "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=build /opt/tidb-operator /opt/tidb-operator
# The paths that v1.6's manifests and the Discovery Deployment call
RUN ln -s /opt/tidb-operator/bin/tidb-discovery /opt/tidb-operator/bin/tidb-controller-manager /usr/local/bin/
USER 65532:65532
CMD ["/usr/local/bin/tidb-controller-manager"]
