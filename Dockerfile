FROM python:3.13-slim
WORKDIR /src
COPY pyproject.toml README.md ./
COPY wire wire
COPY log log
COPY coordinator coordinator
COPY broker broker
RUN pip install --no-cache-dir . && useradd klamm && install -d -o klamm /var/lib/klamm
USER klamm
ENTRYPOINT ["klamm"]
