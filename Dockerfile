# An image that runs `transduce serve`. Build: docker build -t transduce .
# Run:   docker run -p 127.0.0.1:8000:8000 -v /srv/models/en-de:/models/en-de:ro -v /srv/keys:/run/keys:ro transduce
FROM python:3.12-slim

RUN useradd --system --create-home --uid 10001 transduce
WORKDIR /opt/transduce
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# Set this to the index of torch's CPU builds (PyTorch's site names it): the default build contains several GB of CUDA.
# docker build --build-arg PIP_EXTRA_INDEX_URL=… -t transduce .
ARG PIP_EXTRA_INDEX_URL=""
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve]"

USER transduce
# Clients reach a container through its network interface: listen on all addresses, which requires keys.
ENV TRANSDUCE_SERVE_HOST=0.0.0.0 \
    TRANSDUCE_SERVE_PORT=8000 \
    TRANSDUCE_SERVE_MODELS=/models/en-de \
    TRANSDUCE_SERVE_API_KEY_FILE=/run/keys/transduce
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s --interval=15s --timeout=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=8)"]
ENTRYPOINT ["transduce", "serve"]
