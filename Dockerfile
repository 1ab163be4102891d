# An image that runs `transduce serve`. Build: docker build -t transduce .
# Run, with the bundled models: docker run -p 127.0.0.1:8000:8000 -v /srv/keys:/run/keys:ro transduce
# With models of your own, add: -v /srv/models:/models:ro -e TRANSDUCE_SERVE_MODELS=/models/NAME
# /srv/keys/transduce holds the API keys, one per line; the user 10001 must be able to read it.
FROM python:3.12-slim AS build

# The C++ core needs a compiler; the image itself does not.
RUN apt-get update && apt-get install -y --no-install-recommends g++
WORKDIR /opt/transduce
COPY pyproject.toml README.md LICENSE ./
COPY core ./core
COPY src ./src
RUN TRANSDUCE_REQUIRE_CORE=1 pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim

RUN useradd --create-home --shell /usr/sbin/nologin --uid 10001 transduce
COPY constraints.txt /opt/transduce/
COPY --from=build /wheels /wheels
# The C++ core translates without torch. For attention pages and likelihoods: --build-arg EXTRAS=serve,train, with PyTorch's
# index of CPU builds as PIP_EXTRA_INDEX_URL (the default build contains several GB of CUDA).
ARG PIP_EXTRA_INDEX_URL=""
ARG EXTRAS=serve
RUN pip install --no-cache-dir --constraint /opt/transduce/constraints.txt "$(ls /wheels/*.whl)[${EXTRAS}]"

USER transduce
# Clients reach a container through its network interface: listen on all addresses, which requires keys.
ENV TRANSDUCE_SERVE_HOST=0.0.0.0 \
    TRANSDUCE_SERVE_PORT=8000 \
    TRANSDUCE_SERVE_API_KEY_FILE=/run/keys/transduce
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s --interval=15s --timeout=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=8)"]
ENTRYPOINT ["transduce", "serve"]
