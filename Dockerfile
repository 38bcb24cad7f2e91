# An image for a Docker work pool, or for running ssrem without installing it:
#   docker build -t ssrem . && docker run --rm -v "$PWD/warehouse:/home/ssrem/warehouse" ssrem ssrem run
FROM python:3.11-slim

RUN useradd --create-home ssrem
WORKDIR /opt/ssrem
COPY pyproject.toml constraints.txt README.md LICENSE prefect.yaml ./
COPY flows flows
COPY tasks tasks
COPY ssrem ssrem
COPY schemas schemas
COPY sql sql
RUN pip install --no-cache-dir -c constraints.txt '.[train,flows]'

USER ssrem
# `prefect deploy --all` in /opt/ssrem of the image makes deployments that run in it; they name the home folder by its
# whole path, /home/ssrem/warehouse.
WORKDIR /home/ssrem
ENV SSREM_HOME=/home/ssrem/warehouse
CMD ["ssrem", "--help"]
