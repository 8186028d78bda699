# Two images. `party` is any party or the coordinator:
#   docker build --target party [--build-arg EXTRAS=postgresql] -t blindfit .
# `demo`, the last, can also make the certificates and the data of docker-compose.yml.

# Both start from BASE, which may be any image with Python 3.11 to 3.13. To build from the same base every time, pin its
# digest: `docker pull python:3.11-slim` prints one, and
#   docker build --build-arg BASE=python:3.11-slim@sha256:...
# All Python packages have the versions and hashes of constraints/all.txt.
ARG BASE=python:3.11-slim

# The dependencies have layers of their own, so that a change to the code rebuilds and sends only the code.
FROM ${BASE} AS dependencies
ARG EXTRAS=
WORKDIR /src
RUN python -m venv --without-pip /opt/blindfit
COPY pyproject.toml ./
COPY constraints/all.txt constraints/subset.py constraints/
RUN python constraints/subset.py project $EXTRAS > party.txt \
    && python constraints/subset.py project $EXTRAS demo > demo.txt \
    && python constraints/subset.py build > build.txt \
    && pip --python /opt/blindfit/bin/python install --no-cache-dir --require-hashes -r party.txt \
    && find /opt/blindfit -depth -type d \( -name tests -o -name include \) -exec rm -r {} +

FROM dependencies AS code
RUN pip install --no-cache-dir --require-hashes -r build.txt
COPY README.md LICENSE ./
COPY protos protos
COPY algorithms algorithms
COPY parties parties
COPY coordinator coordinator
COPY blindfit blindfit
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && pip --python /opt/blindfit/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheel/*.whl

FROM ${BASE} AS runtime
LABEL org.opencontainers.image.title=blindfit org.opencontainers.image.licenses=Apache-2.0
# A new volume takes the owner and the mode of the folder that it is mounted on.
RUN groupadd --gid 10001 blindfit \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin blindfit \
    && install -d -o blindfit -g blindfit -m 700 /identity /data /state /reports
COPY --from=dependencies /opt/blindfit /opt/blindfit
ENV PATH=/opt/blindfit/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER blindfit
ENTRYPOINT ["blindfit"]
CMD ["--help"]

FROM runtime AS party
COPY --from=code /code /opt/blindfit

FROM runtime AS demo
USER root
COPY --from=dependencies /src/demo.txt /tmp/
RUN PYTHONDONTWRITEBYTECODE= pip --python /opt/blindfit/bin/python install --no-cache-dir --require-hashes -r /tmp/demo.txt \
    && find /opt/blindfit -depth -type d -name tests -exec rm -r {} + \
    && install -d -o blindfit -g blindfit -m 700 /authority \
    && for party in hospital laboratory archive notary clinic east west coordinator; do \
        install -d -o blindfit -g blindfit -m 700 "/identities/$party" "/datasets/$party"; \
    done
COPY --from=code /code /opt/blindfit
COPY examples /examples
USER blindfit
