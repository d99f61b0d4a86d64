# The image of the controller-manager and of Discovery. The first stage builds, the second only runs.
FROM python:3.11-slim AS build
COPY . /src
RUN python -m venv --without-pip /opt/tidb-operator
RUN python -m pip --python /opt/tidb-operator/bin/python install --no-cache-dir --no-compile /src

FROM python:3.11-slim
# The interpreter stays, its build tools do not
RUN python -m pip uninstall --yes --root-user-action=ignore setuptools wheel pip
COPY --from=build /opt/tidb-operator /opt/tidb-operator
# The paths that v1.6's manifests and the Discovery Deployment call
RUN ln -s /opt/tidb-operator/bin/tidb-operator /opt/tidb-operator/bin/tidb-discovery \
    /opt/tidb-operator/bin/tidb-controller-manager /usr/local/bin/
USER 65532:65532
CMD ["/usr/local/bin/tidb-controller-manager"]
