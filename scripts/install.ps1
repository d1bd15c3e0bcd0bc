<#
Installs shadowob-connector for this user. Windows PowerShell 5.1 or later.

  irm <release>/install.ps1 | iex

  SHADOWOB_CONNECTOR_INSTALL_DIR    where to put it                    (~\.local\bin)
  SHADOWOB_CONNECTOR_VERSION        which release, such as 0.1.0       (the latest)
  SHADOWOB_CONNECTOR_DOWNLOAD_URL   the folder that holds the assets and SHA256SUMS

The old executable stays as it is until the new one is downloaded, verified and has run once.
#>

# Everything is inside functions and started by the last line, so a script cut short by a broken
# connection does nothing. Failures are thrown: `exit` would close the window of whoever piped this to iex.

function Get-ShadowobArchitecture {
  # What Windows itself is. The process' own PROCESSOR_ARCHITECTURE is AMD64 or x86 under emulation on
  # ARM64, and PROCESSOR_ARCHITEW6432 tells only a 32-bit process the truth.
  $machine = $null
  try {
    $key = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
    $machine = (Get-ItemProperty -Path $key).PROCESSOR_ARCHITECTURE
  } catch {
    # A locked-down registry leaves the process' own view.
    $machine = $null
  }
  if (-not $machine) { $machine = $env:PROCESSOR_ARCHITEW6432 }
  if (-not $machine) { $machine = $env:PROCESSOR_ARCHITECTURE }
  switch ($machine) {
    'AMD64' { return 'x64' }
    'ARM64' { return 'arm64' }
    default { throw "shadowob-connector: there is no build for the processor type '$machine'; 64-bit Windows is needed" }
  }
}

function Get-ShadowobBaseUrl {
  $version = $env:SHADOWOB_CONNECTOR_VERSION -replace '^v', ''
  if ($version -and $version -notmatch '^[0-9A-Za-z.+-]+$') { throw "shadowob-connector: '$version' is no version" }
  if ($env:SHADOWOB_CONNECTOR_DOWNLOAD_URL) { return $env:SHADOWOB_CONNECTOR_DOWNLOAD_URL.TrimEnd('/') }
  $releases = 'https://github.com/shadowob/shadowob-connector/releases'
  if ($version -and $version -ne 'latest') { return "$releases/download/v$version" }
  return "$releases/latest/download"
}

function Get-ShadowobExpectedSum([string]$sumsFile, [string]$asset) {
  foreach ($line in Get-Content -LiteralPath $sumsFile) {
    if ($line -match '^([0-9a-fA-F]{64}) [ *](.+)$' -and $Matches[2] -eq $asset) { return $Matches[1].ToLowerInvariant() }
  }
  throw "shadowob-connector: SHA256SUMS names no checksum for $asset"
}

function Test-ShadowobRun([string]$file, [string]$asset) {
  # All of it: cutting the pipeline short would lose the exit code.
  $lines = @(& $file --version)
  $shown = "$($lines | Select-Object -First 1)"
  if ($LASTEXITCODE -eq 0) { return $shown }
  $reason = ''
  # STATUS_ILLEGAL_INSTRUCTION
  if ($LASTEXITCODE -eq -1073741795) { $reason = ' The processor lacks instructions that it needs (x64 needs SSE4.2).' }
  throw "shadowob-connector: $asset does not run here (exit $LASTEXITCODE).$reason $shown"
}

function Move-ShadowobIntoPlace([string]$from, [string]$final, [string]$aside) {
  # Windows lets a running executable be renamed, not replaced.
  $hadOld = Test-Path -LiteralPath $final
  if ($hadOld) { Move-Item -LiteralPath $final -Destination $aside -Force }
  try {
    Move-Item -LiteralPath $from -Destination $final
  } catch {
    if ($hadOld) { Move-Item -LiteralPath $aside -Destination $final -Force }
    throw
  }
}

function Install-ShadowobConnector {
  $ErrorActionPreference = 'Stop'
  $ProgressPreference = 'SilentlyContinue'
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

  $asset = "shadowob-connector-windows-$(Get-ShadowobArchitecture).exe"
  $url = Get-ShadowobBaseUrl
  $dir = $env:SHADOWOB_CONNECTOR_INSTALL_DIR
  if (-not $dir) { $dir = Join-Path $HOME '.local\bin' }
  $final = Join-Path $dir 'shadowob-connector.exe'
  if (Test-Path -LiteralPath $final -PathType Container) { throw "shadowob-connector: $final is a folder" }
  New-Item -ItemType Directory -Force -Path $dir | Out-Null

  # Old executables that were still running when they were replaced; those that still run stay.
  Get-ChildItem -LiteralPath $dir -Filter '.shadowob-connector-old.*' -Force |
    Remove-Item -Force -ErrorAction SilentlyContinue
  # What a killed run left; the folder names its process.
  Get-ChildItem -LiteralPath $dir -Filter '.shadowob-connector-install.*' -Force |
    Where-Object { -not (Get-Process -Id ([int]$_.Extension.TrimStart('.')) -ErrorAction SilentlyContinue) } |
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue

  # In the destination itself: only a rename inside one volume is whole or not at all.
  $work = Join-Path $dir ".shadowob-connector-install.$PID"
  $aside = Join-Path $dir ".shadowob-connector-old.$([guid]::NewGuid().ToString('N'))"
  New-Item -ItemType Directory -Force -Path $work | Out-Null
  try {
    $sums = Join-Path $work 'SHA256SUMS'
    $new = Join-Path $work 'shadowob-connector.exe'
    Invoke-WebRequest -UseBasicParsing -Uri "$url/SHA256SUMS" -OutFile $sums
    $expected = Get-ShadowobExpectedSum $sums $asset

    Write-Host "Downloading $url/$asset"
    Invoke-WebRequest -UseBasicParsing -Uri "$url/$asset" -OutFile $new
    $actual = (Get-FileHash -LiteralPath $new -Algorithm SHA256).Hash.ToLowerInvariant()
    if ($actual -ne $expected) {
      throw "shadowob-connector: the checksum of $asset is $actual, but the release says $expected; nothing was installed"
    }

    $shown = Test-ShadowobRun $new $asset
    $wanted = $env:SHADOWOB_CONNECTOR_VERSION -replace '^v', ''
    if ($wanted -and $wanted -ne 'latest' -and ($shown -split '\s') -notcontains $wanted) {
      throw "shadowob-connector: asked for version $wanted, but the download says: $shown"
    }
    Move-ShadowobIntoPlace $new $final $aside
    Write-Host "Installed ${final}: $shown"
    Write-Host "Next: & '$final' setup"
  } finally {
    Remove-Item -LiteralPath $work -Recurse -Force -ErrorAction SilentlyContinue
    Remove-Item -LiteralPath $aside -Force -ErrorAction SilentlyContinue
  }

  if (($env:Path -split ';') -notcontains $dir) {
    Write-Host ''
    Write-Host "$dir is not on your PATH. To add it:"
    Write-Host "  [Environment]::SetEnvironmentVariable('Path', [Environment]::GetEnvironmentVariable('Path', 'User') + ';$dir', 'User')"
  }
}

Install-ShadowobConnector
