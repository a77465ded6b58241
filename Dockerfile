# The first image has the compiler that setup.py asks for.
FROM python:3.13 AS build
WORKDIR /src
COPY pyproject.toml setup.py README.md ./
COPY wire wire
COPY log log
COPY coordinator coordinator
COPY broker broker
RUN pip install --no-cache-dir --prefix=/klamm .

FROM python:3.13-slim
COPY --from=build /klamm /usr/local
RUN useradd klamm && install -d -o klamm /var/lib/klamm
USER klamm
ENTRYPOINT ["klamm"]
