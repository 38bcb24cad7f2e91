# For a Docker work pool, or for ssrem without an installation:
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
RUN pip install --no-cache-dir -c constraints.txt .

USER ssrem
# Deployments name entrypoints and home folders relative to where they run.
WORKDIR /home/ssrem
ENV SSREM_HOME=/home/ssrem/warehouse
CMD ["ssrem", "--help"]
